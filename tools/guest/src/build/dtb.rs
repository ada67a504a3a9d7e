// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest dtb`: the device tree as text.

use std::process::{Command, ExitCode};

use clap::{Args, builder::PossibleValuesParser};
use gpureplay_task::ended;

use crate::{error::Result, folder::Folder, run::machine::CPUS};

/// Prints the guest's device tree.
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask guest dtb --cpu cortex-a76 | grep -A 9 gpu@")]
pub(crate) struct Dtb {
    /// Which CPU's tree.
    #[arg(long, default_value = CPUS[0], value_parser = PossibleValuesParser::new(CPUS))]
    cpu: String,
}

impl Dtb {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let root = folder.guest.join("build-root");
        let loader = root.join("usr/lib64/ld-linux-x86-64.so.2");
        ended(
            Command::new(loader)
                .arg("--library-path")
                .arg(root.join("usr/lib/x86_64-linux-gnu"))
                .arg(root.join("usr/bin/dtc"))
                .args(["-q", "-I", "dtb", "-O", "dts"])
                .arg(folder.boot(&format!("{}.dtb", self.cpu))),
        )
    }
}
