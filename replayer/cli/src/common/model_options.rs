// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options for the model.

use std::num::NonZeroUsize;

use gpureplay_library::device::MAX_THREADS;

/// What a run may do on the model.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct WorkLimit {
    /// What all jobs of a run together may do on the model, in clauses [default: 268435456, seconds of a processor, and two for each byte of the recording and of weights beside it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit_work: Option<u64>,
}

/// Options of the model.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ModelOptions {
    /// Host threads that the model uses, 1 to 512 [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    #[command(flatten)]
    work: WorkLimit,
    /// Show the model's messages on standard error: faults, then also resets and jobs (-vv), then everything (-vvv)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl ModelOptions {
    pub(crate) fn given(self) -> bool {
        self.threads.is_some() || self.work.limit_work.is_some() || self.verbose > 0
    }

    pub(crate) fn thread_count(self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads.unwrap_or_else(all).min(MAX_THREADS)
    }

    pub(crate) fn with_threads(self, count: usize) -> Self {
        Self {
            threads: Some(count.max(1)),
            ..self
        }
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=MAX_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("expected a whole number from 1 to {MAX_THREADS}")),
    }
}

impl From<WorkLimit> for gpureplay_library::ModelOptions {
    fn from(work: WorkLimit) -> Self {
        Self {
            work_limit: work.limit_work,
            ..Self::default()
        }
    }
}

impl From<ModelOptions> for gpureplay_library::ModelOptions {
    fn from(options: ModelOptions) -> Self {
        Self {
            threads: options.threads,
            verbose: options.verbose,
            work_limit: options.work.limit_work,
        }
    }
}
