// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay doctor`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_linux::machine::Finding;
use gpureplay_linux::{Board, machine};
use serde::Serialize;

use crate::Result;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::machine_gpu;
use crate::common::machine_report;
use crate::common::machine_streams;
use crate::common::model_node::NodeOptions;
use crate::common::secure_world;
use crate::common::terminal;
use crate::common::ways;

const RECORDER: &str = "/dev/gpureplay";

const EXAMPLES: &str = "\
Examples:
  sudo gpureplay doctor
  gpureplay doctor --json
  gpureplay doctor --board hikey960      what this board needs, and whether the device tree agrees
  gpureplay doctor --report report.txt   the same, the GPU's registers and a self test, to send with a question

Ends with 0 when a replay with --device panfrost, panthor, kbase, nano or optee, or of CUDA, can start, else with 1.";

/// Check this machine
///
/// Says which ways to record and replay work here, best first, which command to type next, and what to do about what is missing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// Board to compare with [default: the one that the device tree names]
    #[arg(long, value_name = "BOARD", value_parser = board)]
    board: Option<Board>,
    /// Write a report about this machine, with a self test
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn board(name: &str) -> std::result::Result<Board, String> {
    Board::named(name).ok_or_else(|| {
        let names: Vec<_> = Board::names().collect();
        format!("boards are: {}", names.join(", "))
    })
}

/// One thing that was looked at, for `--json`.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct FindingReport<'a> {
    /// What was looked at.
    subject: &'static str,
    /// It works, or a replay can continue.
    good: bool,
    found: &'a str,
    /// The command or step that helps.
    cure: Option<&'a str>,
}

impl Doctor {
    pub(crate) fn execute(&self) -> Result {
        let mut destinations = Destinations::new(self.force.force);
        if let Some(report) = &self.report {
            destinations.claim(report)?;
        }
        let root = Path::new("/");
        let streams = machine_streams::findings(root, &machine_gpu::compatibles(root));
        let mut findings = streams.unwrap_or_else(|| machine::doctor(root, self.board.as_ref()));
        findings.insert(findings.len().min(1), machine_gpu::finding(root));
        findings.push(secure_world::finding());
        let mut recorders = ways::to_record(Path::new(RECORDER), &NodeOptions::unnamed()?);
        let mut devices = ways::to_replay(&findings);
        ways::add_cuda(
            &mut recorders,
            &mut devices,
            gpureplay_cuda_replay::command::ways(),
        );
        let mut out = terminal::stdout();
        let text = format!(
            "Record, best first\n{}Replay, best first\n{}Next: {}\n\nChecks\n{}",
            lines(&recorders),
            lines(&devices),
            ways::next(&recorders),
            lines(&findings)
        );
        if let Some(path) = &self.report {
            let report = machine_report::written(&text, &devices);
            destinations.write(path, report.as_bytes())?;
            terminal::note(machine_report::told(path));
        }
        if self.json {
            let ways = recorders.iter().chain(&devices);
            let list = findings.iter().chain(ways).map(|finding| FindingReport {
                subject: finding.subject,
                good: finding.good,
                found: &finding.found,
                cure: finding.cure.as_deref(),
            });
            let text = serde_json::to_string(&list.collect::<Vec<_>>())
                .map_err(|error| Failure::Output(error.to_string()))?;
            out.write_all((text + "\n").as_bytes())?;
        } else if self.report.is_none() {
            out.write_all(text.as_bytes())?;
        }
        let in_linux = [
            "run --device panfrost",
            "run --device panthor",
            "run --device kbase",
            "run --device nano",
            "run --device optee",
            ways::CUDA[1],
        ];
        let replays = |way: &Finding| way.good && in_linux.contains(&way.subject);
        Ok(match devices.iter().any(replays) {
            true => Outcome::Done,
            false => Outcome::Mismatch,
        })
    }
}

fn lines(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let sign = if finding.good { "ok  " } else { "bad " };
        text += &format!("{sign} {}: {}\n", finding.subject, finding.found);
        if let Some(cure) = &finding.cure {
            text += &format!("       do: {cure}\n");
        }
    }
    text
}
