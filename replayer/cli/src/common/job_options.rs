// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--jobs`.

use clap::Args;
use gpureplay_jobs::{Jobs, JobsError, Selector, SelectorError};
use gpureplay_library::{Recording, shown};

use crate::Result;
use crate::common::failure::Failure;

/// Options about jobs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct JobOptions {
    /// Only these jobs: 3, 3..7, 18.., /regular expression/, kernel:NAME, hash:98aa, layer:conv2, or a list of these with commas
    #[arg(long, value_name = "SELECTOR")]
    jobs: Option<Selector>,
}

impl JobOptions {
    pub(crate) fn chosen(&self) -> bool {
        self.jobs.is_some()
    }

    pub(crate) fn text(&self) -> Option<String> {
        self.jobs.as_ref().map(Selector::to_string)
    }

    /// Fails if none is selected.
    pub(crate) fn select(&self, recording: &Recording) -> Result<(Jobs, Vec<usize>)> {
        let jobs = table(recording)?;
        let selected = match &self.jobs {
            Some(selector) => selector.select(&jobs)?,
            None => (0..jobs.jobs.len()).collect(),
        };
        Ok((jobs, selected))
    }
}

pub(crate) fn table(recording: &Recording) -> Result<Jobs> {
    Jobs::of(recording).map_err(|error: JobsError| {
        Failure::Recording(format!("{}: {error}", shown(&recording.files().path)))
    })
}

pub(crate) fn one(selector: &Selector, jobs: &Jobs) -> Result<usize> {
    match selector.select(jobs)?.as_slice() {
        [only] => Ok(*only),
        several => Err(Failure::Usage(format!(
            "--jobs {selector} means {} jobs ({}, …); name one of them by its number",
            several.len(),
            several.first().copied().unwrap_or_default()
        ))),
    }
}

impl From<SelectorError> for Failure {
    fn from(error: SelectorError) -> Self {
        Self::Usage(format!("--jobs {error}"))
    }
}
