// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask guest`: builds and runs the full-system guest.

mod app;
pub(crate) mod bare;
mod build;
mod cache;
mod complaints;
mod conformance;
mod devices;
mod dtb;
mod firmware;
mod firmware_test;
mod folder;
mod granularity;
mod kbase;
mod kernel_log;
mod machine;
mod manifest;
mod mirror;
mod networks;
mod networks_page;
mod operators;
mod others;
mod payload;
mod piglit;
mod record;
mod registers;
mod run;
mod session;
mod shell;
mod startup;
mod static_command;
mod step;
mod test;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::error::Result;
pub(crate) use folder::Folder;

/// The `guest` task.
#[derive(Args)]
pub(crate) struct Guest {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Build),
    Run(run::Run),
    Shell(shell::Shell),
    Record(record::Record),
    Networks(networks::Networks),
    Granularity(granularity::Granularity),
    Test(test::Test),
    Devices(devices::Devices),
    BenchStartup(startup::BenchStartup),
    Static(static_command::Static),
    Dtb(dtb::Dtb),
    Firmware(firmware::Firmware),
    Piglit(piglit::Piglit),
    Operators(operators::Operators),
    Kbase(kbase::Kbase),
}

impl Guest {
    /// Runs the chosen subcommand.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        match self.command {
            Command::Build(command) => command.execute(),
            Command::Run(command) => command.execute(),
            Command::Shell(command) => command.execute(),
            Command::Record(command) => command.execute(),
            Command::Networks(command) => command.execute(),
            Command::Granularity(command) => command.execute(),
            Command::Test(command) => command.execute(),
            Command::Devices(command) => command.execute(),
            Command::BenchStartup(command) => command.execute(),
            Command::Static(command) => command.execute(),
            Command::Dtb(command) => command.execute(),
            Command::Firmware(command) => command.execute(),
            Command::Piglit(command) => command.execute(),
            Command::Operators(command) => command.execute(),
            Command::Kbase(command) => command.execute(),
        }
    }
}
