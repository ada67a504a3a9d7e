// SPDX-License-Identifier: MIT OR Apache-2.0
//! The full-system guest.
#![forbid(unsafe_code)]

mod build;
mod compile_kernel;
mod conformance;
mod devices;
mod firmware;
mod folder;
mod foreign;
mod kbase;
mod networks;
mod optee;
mod packages;
mod record;
mod run;
mod size;
mod startup;
mod tests;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gpureplay_task::{error, files};

use build::{Build, cc::Cc, dtb::Dtb, mirror::Sources, static_command::Static};
use compile_kernel::CompileKernel;
use conformance::{operators::Operators, piglit::Piglit};
use devices::{Devices, panfrost::Panfrost};
use firmware::Firmware;
use foreign::Foreign;
use kbase::Kbase;
use networks::{Networks, granularity::Granularity, recording::RecordingTimes};
use optee::Optee;
use packages::Packages;
use record::Record;
use run::{Run, shell::Shell};
use size::Size;
use startup::BenchStartup;
use tests::Test;

/// The full-system guest: Debian's kernel and GPU stack in QEMU, with our model as the GPU.
#[derive(Parser)]
#[command(name = "cargo xtask guest", bin_name = "cargo xtask guest", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(Build),
    Cc(Cc),
    CompileKernel(CompileKernel),
    Run(Run),
    Shell(Shell),
    Record(Record),
    Networks(Networks),
    Granularity(Granularity),
    RecordingTimes(RecordingTimes),
    Test(Test),
    Devices(Devices),
    Panfrost(Panfrost),
    BenchStartup(BenchStartup),
    Static(Static),
    Dtb(Dtb),
    Firmware(Firmware),
    Optee(Optee),
    Piglit(Piglit),
    Operators(Operators),
    Foreign(Foreign),
    Kbase(Kbase),
    Packages(Packages),
    Size(Size),
    Sources(Sources),
}

impl Command {
    fn execute(self) -> error::Result<ExitCode> {
        match self {
            Command::Build(command) => command.execute(),
            Command::Cc(command) => command.execute(),
            Command::CompileKernel(command) => command.execute(),
            Command::Run(command) => command.execute(),
            Command::Shell(command) => command.execute(),
            Command::Record(command) => command.execute(),
            Command::Networks(command) => command.execute(),
            Command::Granularity(command) => command.execute(),
            Command::RecordingTimes(command) => command.execute(),
            Command::Test(command) => command.execute(),
            Command::Devices(command) => command.execute(),
            Command::Panfrost(command) => command.execute(),
            Command::BenchStartup(command) => command.execute(),
            Command::Static(command) => command.execute(),
            Command::Dtb(command) => command.execute(),
            Command::Firmware(command) => command.execute(),
            Command::Optee(command) => command.execute(),
            Command::Piglit(command) => command.execute(),
            Command::Operators(command) => command.execute(),
            Command::Foreign(command) => command.execute(),
            Command::Kbase(command) => command.execute(),
            Command::Packages(command) => command.execute(),
            Command::Size(command) => command.execute(),
            Command::Sources(command) => command.execute(),
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().command.execute() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
