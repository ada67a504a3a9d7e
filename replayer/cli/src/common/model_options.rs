// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options for the model.

/// Options of the model.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ModelOptions {
    /// Host threads that the model uses [default: one per processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Show the model's messages on standard error: faults, then also resets and jobs (-vv), then everything (-vvv)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl From<ModelOptions> for gpureplay_library::ModelOptions {
    fn from(options: ModelOptions) -> Self {
        Self {
            threads: options.threads,
            verbose: options.verbose,
        }
    }
}
