// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask install`: the C library without a package.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;

use super::{
    Machine, Source,
    library::{Layout, Library},
};
use crate::error::{Error, Result};

/// Builds the library for C and installs it: shared and static library, header, gpureplay.pc.
///
/// Replaces earlier files. Below /usr/local, run `ldconfig` afterwards.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask install\n  cargo xtask install --prefix /usr --libraries lib/x86_64-linux-gnu --destdir /tmp/stage"
)]
pub(crate) struct Install {
    /// Machine that it is for
    #[arg(long, value_enum, default_value_t = Machine::X86_64)]
    machine: Machine,
    /// Where it will lie
    #[arg(long, default_value = "/usr/local")]
    prefix: String,
    /// Directory of libraries below the prefix
    #[arg(long, default_value = "lib")]
    libraries: String,
    /// Directory that stands for the root of the system
    #[arg(long, default_value = "/")]
    destdir: PathBuf,
}

impl Install {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        if !Path::new(&self.prefix).is_absolute() {
            return Err(Error::Usage(format!(
                "--prefix {} must be an absolute path",
                self.prefix
            )));
        }
        let source = Source::find()?;
        let folder = source.top.join("target/dist");
        let library =
            Library::built(&source.build(&folder, self.machine, "gnu", "gpureplay-c")?)?;
        let layout = Layout {
            prefix: self.prefix.trim_end_matches('/').to_owned(),
            libraries: self.libraries,
        };
        for placed in library.placed(&source, &layout)? {
            println!("{}", placed.write_below(&self.destdir)?.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}
