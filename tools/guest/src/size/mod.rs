// SPDX-License-Identifier: MIT OR Apache-2.0
//! `size`: bytes of verifier, engine and firmware; no panic, no floating point.

mod measure;
mod object;
mod stack;

use std::{path::Path, process::ExitCode};

use clap::Args;
use gpureplay_task::measured;

use crate::{error::Result, folder::Folder};
use measure::Sizes;

/// Measures text and read-only data of parser, verifier, engine and the bare-metal image.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask size\n  cargo xtask size --check\n  cargo xtask size --write\n\n\
                  Builds in the guest's build root (`cargo xtask guest build`). Ends with 1 when a panic or a floating-point\n\
                  instruction is linked in, and with --check also when measurements/size.json has other numbers."
)]
pub(crate) struct Size {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Compare with measurements/size.json.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Write measurements/size.json.
    #[arg(long)]
    write: bool,
}

/// Most stack of a bare-metal image, in bytes.
pub(crate) fn stack_bound(folder: &Folder, image: &Path) -> Result<u64> {
    object::Object::of_program(folder, image)?.stack_bound()
}

impl Size {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let sizes = Sizes::measure(&folder)?;
        let table = sizes.table();
        if self.json {
            println!("{}", sizes.json());
        } else {
            print!("{table}");
        }
        if self.write {
            measured::keep("size", std::slice::from_ref(&table))?;
        }
        if self.check && measured::kept("size")? != [table] {
            eprintln!(
                "error: measurements/size.json has other numbers: run `cargo xtask size --write`"
            );
            return Ok(ExitCode::from(1));
        }
        Ok(ExitCode::SUCCESS)
    }
}
