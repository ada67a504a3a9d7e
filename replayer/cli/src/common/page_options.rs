// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report's `--output`, and facts of a GPU from the user.

use std::path::{Path, PathBuf};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Html,
    Json,
    Csv,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }

    fn of(path: &Path, formats: &[Self]) -> Result<Self> {
        let extension = path.extension().unwrap_or_default();
        let mut known = formats.iter().copied();
        known
            .find(|format| extension.eq_ignore_ascii_case(format.extension()))
            .ok_or_else(|| {
                let names = formats.iter().map(|it| format!(".{}", it.extension()));
                Failure::Usage(format!(
                    "--output {}: the file's name must end in {}",
                    shown(path),
                    names.collect::<Vec<_>>().join(" or ")
                ))
            })
    }
}

/// Options about the page.
#[derive(Args, Clone, Debug)]
pub(crate) struct PageOptions {
    /// Write one HTML file with everything, which loads nothing
    #[arg(long, value_name = "FILE", hide = true)]
    html: Option<PathBuf>,
    /// File for the result; its extension is the format
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["html", "json"])]
    output: Option<PathBuf>,
    /// Instructions of threads that the GPU executes in a second at most, for the roofline: 1.2e11
    #[arg(long, value_name = "N", value_parser = peak)]
    peak_instructions: Option<f64>,
    /// Bytes of memory that the GPU moves in a second at most, for the roofline: 1.5e10
    #[arg(long, value_name = "N", value_parser = peak)]
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
    fn kind(&self, formats: &[Format]) -> Result<Option<(Format, &Path)>> {
        let given = match (&self.html, &self.output) {
            (Some(path), _) => Some((Format::Html, path.as_path())),
            (None, Some(path)) => Some((Format::of(path, formats)?, path.as_path())),
            (None, None) => None,
        };
        let is_page = given.is_some_and(|(format, _)| format == Format::Html);
        if !is_page && (self.peak_instructions.is_some() || self.peak_bytes.is_some()) {
            return Err(Failure::Usage(
                "--peak-instructions and --peak-bytes are for a page: --output FILE.html".into(),
            ));
        }
        Ok(given)
    }

    pub(crate) fn claim(
        &self,
        recording: &Recording,
        formats: &[Format],
    ) -> Result<(Option<Format>, Destinations)> {
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads_recording(recording.files());
        let given = self.kind(formats)?;
        if let Some((_, path)) = given {
            destinations.claim(path)?;
        }
        Ok((given.map(|(format, _)| format), destinations))
    }

    pub(crate) fn write_text(&self, destinations: &Destinations, contents: &[u8]) -> Result<()> {
        match &self.output {
            Some(path) => destinations.write(path, contents),
            None => Ok(()),
        }
    }

    pub(crate) fn write(
        &self,
        destinations: &Destinations,
        report: &JobReport,
        jobs: &Jobs,
        analysis: Option<&Report>,
    ) -> Result<()> {
        let Some(path) = self.html.as_ref().or(self.output.as_ref()) else {
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
