// SPDX-License-Identifier: MIT OR Apache-2.0
//! `analyse`: memory accesses, counted by probes.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::command::extract::source::{self, Source};
use crate::command::failure::{Failure, Outcome, json, write};
use crate::command::report::say_json;
use crate::command::run::Checking;
use crate::command::target::Target;
use crate::{Verdict, Wanted};
pub(crate) use report::AnalyseReport;

/// Look inside a launch
///
/// Counts lines of memory, bank conflicts, divergence, heat and races, by source line.
#[derive(Args)]
pub(crate) struct Analyse {
    /// The launch.
    #[arg(value_name = "DIR#K")]
    target: Target,
    /// What to count; everything without it.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    what: Vec<What>,
    /// The kernel's PTX, if neither the image nor Triton's cache holds it.
    #[arg(long, value_name = "FILE.ptx")]
    ptx: Option<PathBuf>,
    /// PTX with a function `probe` of yours, which is called at accesses and blocks.
    #[arg(long, value_name = "FILE.ptx")]
    probe: Option<PathBuf>,
    /// Exit with 1 if a race or a read before any write is found, or if races are incomplete.
    #[arg(long)]
    deny: bool,
    /// Print at most N places, those with most work first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Write the report as JSON.
    #[arg(long, short, value_name = "FILE.json")]
    output: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    checking: Checking,
}

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Lines and sectors of memory that warps touch, and bank conflicts of shared memory.
    Lines,
    /// Accesses by allocation and part of it.
    Heat,
    /// Executions by warps with lanes elsewhere.
    Divergence,
    /// Accesses to shared memory that nothing orders, and reads of it before any write.
    Races,
}

impl What {
    const fn word(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Heat => "heat",
            Self::Divergence => "divergence",
            Self::Races => "races",
        }
    }
}

const OWN: &str = "probe";

impl Analyse {
    pub(crate) fn execute(&self) -> Outcome {
        let recording = self.target.recording()?;
        let number = self.target.one(&recording)?;
        let launch = recording.launch(number)?;
        let (text, from) = match &self.ptx {
            Some(path) => (source::read(path)?, path.display().to_string()),
            None => {
                let image = recording
                    .store()
                    .image(launch.image.hash, launch.image.size)?;
                let found = Source::find(&image, &launch.kernel)?;
                let text = found.ptx.zip(found.from);
                text.ok_or_else(|| Failure::MachineCode(launch.kernel.clone()))?
            }
        };
        let own = self.probe.as_deref().map(source::read).transpose()?;
        let own = own.map(|text| String::from_utf8_lossy(&text).into_owned());
        let mut session = self.checking.session(&self.target)?;
        let Some(mask) = self.checking.mask(&mut session)? else {
            return Ok(ExitCode::SUCCESS);
        };
        let what = if self.what.is_empty() {
            What::value_variants()
        } else {
            &self.what
        };
        let has = |one| what.contains(&one);
        let wanted = Wanted {
            accesses: has(What::Lines) || has(What::Heat),
            divergence: has(What::Divergence),
            races: has(What::Races),
            own: own.as_deref().map(|text| (text, OWN)),
        };
        let how = self.checking.comparison();
        let analysis = session.analyse(&text, &wanted, &how, &mask)?;
        let words: Vec<&str> = what.iter().map(|one| one.word()).collect();
        let report = AnalyseReport::new(session.launch(), &from, words, &analysis);
        if let Some(path) = &self.output {
            write(
                path,
                &(serde_json::to_string(&report).map_err(json)? + "\n"),
            )?;
        }
        if self.json {
            say_json(&report)?;
        } else {
            report.print(self.top)?;
        }
        let is_denied = self.deny && report.has_found();
        let differs = matches!(analysis.verdict, Verdict::Differs(_));
        Ok(ExitCode::from(u8::from(differs || is_denied)))
    }
}
