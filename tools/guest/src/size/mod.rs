// SPDX-License-Identifier: MIT OR Apache-2.0
//! `size`: what verifier, engine and firmware cost in bytes, and that no panic and no floating point is in them.

mod measure;
mod object;
mod stack;
mod table;

use std::{path::Path, process::ExitCode};

use clap::Args;

use crate::{
    error::{Error, Result},
    folder::Folder,
};
use measure::Sizes;

/// Measures text and read-only data of parser, verifier, engine and the bare-metal image.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask size\n  cargo xtask size --check\n  cargo xtask size --write\n\n\
                  Builds in the guest's build root (`cargo xtask guest build`). Ends with 1 when a panic or a floating-point\n\
                  instruction is linked in, and with --check also when docs/performance.md shows other numbers."
)]
pub(crate) struct Size {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Compare with the table in docs/performance.md.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Replace the table in docs/performance.md.
    #[arg(long)]
    write: bool,
}

/// The most stack in bytes that a bare-metal image uses.
pub(crate) fn stack_bound(folder: &Folder, image: &Path) -> Result<u64> {
    object::Object::of_program(folder, image)?.stack_bound()
}

impl Size {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let sizes = Sizes::measure(&folder)?;
        if self.json {
            println!("{}", table::json(&sizes));
        } else {
            print!("{}", table::text(&sizes));
        }
        let document = folder.repository.join("docs/performance.md");
        let read = || std::fs::read_to_string(&document).map_err(Error::io("read", &document));
        if self.write {
            let text = table::replace(&read()?, &sizes)?;
            std::fs::write(&document, text).map_err(Error::io("write", &document))?;
        }
        if self.check {
            let text = read()?;
            if table::replace(&text, &sizes)? != text {
                eprintln!(
                    "error: {} shows other numbers: run `cargo xtask size --write`",
                    document.display()
                );
                return Ok(ExitCode::from(1));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
