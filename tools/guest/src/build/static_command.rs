// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest static`: the command for any aarch64 Linux.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    build::payload,
    error::{Error, Result},
    files,
    folder::Folder,
};

/// Builds a static `gpureplay` for aarch64 Linux in the build root.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  cargo xtask guest static\n  \
                        cargo xtask guest static --out gpureplay-aarch64 && scp gpureplay-aarch64 board:gpureplay")]
pub(crate) struct Static {
    /// Where it goes [default: target/guest/opt/bin/gpureplay]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Static {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let built = payload::static_command(&folder)?;
        let bytes = files::read(&built)?;
        if !is_static_aarch64(&bytes) {
            return Err(Error::Usage(format!(
                "{}: not a static aarch64 program",
                built.display()
            )));
        }
        let to = match self.out {
            Some(out) => {
                fs::copy(&built, &out).map_err(Error::io("write", &out))?;
                out
            }
            None => built,
        };
        println!("{}: static, aarch64, {} bytes", to.display(), bytes.len());
        Ok(ExitCode::SUCCESS)
    }
}

/// Without an interpreter, nothing loads libraries.
fn is_static_aarch64(elf: &[u8]) -> bool {
    const AARCH64: u64 = 183;
    const INTERPRETER: u64 = 3;
    let number = |at: usize, size: usize| {
        let bytes = elf.get(at..at.checked_add(size)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte)),
        )
    };
    let headers = || {
        let (at, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let types = (0..count).map(|index| number(usize::try_from(at + index * size).ok()?, 4));
        types.collect::<Option<Vec<u64>>>()
    };
    elf.starts_with(b"\x7fELF\x02\x01")
        && number(18, 2) == Some(AARCH64)
        && headers().is_some_and(|types| !types.is_empty() && !types.contains(&INTERPRETER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_seen() {
        let mut elf = vec![0; 64 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[18], elf[32], elf[54], elf[56]) = (183, 64, 56, 2);
        (elf[64], elf[120]) = (1, 2);
        assert!(is_static_aarch64(&elf));
        elf[120] = 3;
        assert!(!is_static_aarch64(&elf));
        elf[120] = 2;
        elf[18] = 62;
        assert!(!is_static_aarch64(&elf));
        elf[18] = 183;
        assert!(!is_static_aarch64(&elf[..100]));
        let host = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static_aarch64(&host));
    }
}
