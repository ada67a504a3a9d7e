// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--html`: where the page goes, and what only the user knows about a GPU.

use std::path::PathBuf;

use clap::Args;
use gpureplay_jobs::analysis::page::{Peaks, page};
use gpureplay_jobs::analysis::report::Report;
use gpureplay_jobs::{Jobs, Report as JobReport};
use gpureplay_library::{Recording, shown};

use crate::Result;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::Failure;
use crate::common::terminal;
use crate::text;

/// Options about the page.
#[derive(Args, Clone, Debug)]
pub(crate) struct PageOptions {
    /// Write one HTML file with everything; it loads nothing
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Instructions of threads that the GPU executes in a second at most, for the roofline: 1.2e11
    #[arg(long, value_name = "N", value_parser = peak, requires = "html")]
    peak_instructions: Option<f64>,
    /// Bytes of memory that the GPU moves in a second at most, for the roofline: 1.5e10
    #[arg(long, value_name = "N", value_parser = peak, requires = "html")]
    peak_bytes: Option<f64>,
    #[command(flatten)]
    force: Force,
}

fn peak(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("expected a number above 0, such as 1.2e11".into()),
    }
}

impl PageOptions {
    /// Whether a page was asked for.
    pub(crate) fn wanted(&self) -> bool {
        self.html.is_some()
    }

    /// Takes the place of the page, before any work is done.
    ///
    /// # Errors
    /// The command reads this file, or it exists.
    pub(crate) fn claim(&self, recording: &Recording) -> Result<Destinations> {
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads_recording(recording.files());
        if let Some(path) = &self.html {
            destinations.claim(path)?;
        }
        Ok(destinations)
    }

    /// Writes the page.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(
        &self,
        destinations: &Destinations,
        report: &JobReport,
        jobs: &Jobs,
        analysis: Option<&Report>,
    ) -> Result<()> {
        let Some(path) = &self.html else {
            return Ok(());
        };
        let peaks = Peaks {
            instructions: self.peak_instructions,
            bytes: self.peak_bytes,
        };
        let page = page(report, jobs, analysis, peaks);
        let page = page.map_err(|error| Failure::Output(error.to_string()))?;
        destinations.write(path, page.as_bytes())?;
        if !destinations.takes_standard_output() {
            terminal::note(format_args!(
                "{}: {}, {}",
                shown(path),
                text::count(report.jobs.len() as u64, "job"),
                text::bytes(page.len() as u64)
            ));
        }
        Ok(())
    }
}
