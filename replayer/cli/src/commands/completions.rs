// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay completions`: what a shell needs to complete this command's words.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use crate::Result;
use crate::common::failure::Outcome;

const EXAMPLES: &str = "\
Examples:
  gpureplay completions bash > /etc/bash_completion.d/gpureplay
  gpureplay completions zsh > ~/.zfunc/_gpureplay
  gpureplay completions fish > ~/.config/fish/completions/gpureplay.fish";

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn execute(&self) -> Result {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "gpureplay", &mut script);
        let mut out = gpureplay_host::output();
        out.write_all(&script)?;
        out.flush()?;
        Ok(Outcome::Done)
    }
}
