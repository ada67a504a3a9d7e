// SPDX-License-Identifier: MIT OR Apache-2.0
//! `size`: bytes of verifier, engine and firmware.

mod measure;
mod object;
mod stack;

use std::{path::Path, process::ExitCode};

use clap::Args;
use gpureplay_task::measured::{self, Table};

use crate::{error::Result, folder::Folder};
use measure::Sizes;

/// Measures text and read-only data of parser, verifier, engine and the bare-metal image.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask size\n  cargo xtask size --check\n  cargo xtask size --write\n\n\
                  Builds in the guest's build root (`cargo xtask guest build`). Ends with 1 when a panic or a floating-point\n\
                  instruction is linked in, when a part is above its goal, and with --check also when measurements/size.json\n\
                  has other numbers of the same compiler."
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
        let mut failed = false;
        for row in sizes.above_goals() {
            eprintln!("error: {row}");
            failed = true;
        }
        if self.check {
            failed |= !is_as_kept(&table, &measured::kept("size")?, &sizes.compiled_by());
        }
        Ok(ExitCode::from(u8::from(failed)))
    }
}

/// Another compiler's are not compared.
fn is_as_kept(table: &Table, kept: &[Table], compiled_by: &str) -> bool {
    if kept == [table.clone()] {
        return true;
    }
    let same = kept.iter().any(|it| it.about.ends_with(compiled_by));
    if same {
        eprintln!(
            "error: measurements/size.json has other numbers: run `cargo xtask size --write`"
        );
    } else {
        eprintln!(
            "measurements/size.json is another compiler's: only goals are compared. {compiled_by}"
        );
    }
    !same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_one_compiler_are_compared() {
        let table = |bytes: u64, compiler: &str| {
            let mut table = Table::new(format!("Stack. Compiled by {compiler}."), "Part | Bytes");
            table.row(serde_json::json!(["parser", bytes]));
            table
        };
        let new = "Compiled by rustc 2.0.0.";
        let is = |kept: Table| is_as_kept(&table(1, "rustc 2.0.0"), &[kept], new);
        assert!(is(table(1, "rustc 2.0.0")));
        assert!(!is(table(2, "rustc 2.0.0")));
        assert!(is(table(2, "rustc 1.0.0")));
    }
}
