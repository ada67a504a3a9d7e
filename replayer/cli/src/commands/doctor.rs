// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay doctor`: what this machine offers for a replay on its own GPU.

use std::io::Write;
use std::path::Path;

use clap::Args;
use gpureplay_linux::{Board, machine};
use serde::Serialize;

use crate::Result;
use crate::common::failure::{Failure, Outcome};
use crate::common::machine_gpu;
use crate::common::secure_world;
use crate::common::terminal;

const EXAMPLES: &str = "\
Examples:
  sudo gpureplay doctor
  gpureplay doctor --json
  gpureplay doctor --board hikey960      what this board needs, and whether the device tree agrees

Ends with 0 when a replay with --device panfrost, nano or optee can start, with 1 when something stands in the way of all three.";

/// Check this machine
///
/// Says what it offers for a replay on its own GPU, and what to do about what is missing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// Board to compare with [default: the one that the device tree names]
    #[arg(long, value_name = "BOARD", value_parser = board)]
    board: Option<Board>,
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
    /// A replay can go on.
    good: bool,
    found: &'a str,
    /// The command or step that helps.
    cure: Option<&'a str>,
}

impl Doctor {
    pub(crate) fn execute(&self) -> Result {
        let root = Path::new("/");
        let mut findings = machine::doctor(root, self.board.as_ref());
        // Behind the GPU's node: which one it is, and what fits it.
        findings.insert(findings.len().min(1), machine_gpu::finding(root));
        let secure = secure_world::finding();
        let replays_there = secure.good;
        findings.push(secure);
        let mut out = terminal::stdout();
        if self.json {
            let list = findings.iter().map(|finding| FindingReport {
                subject: finding.subject,
                good: finding.good,
                found: &finding.found,
                cure: finding.cure.as_deref(),
            });
            let text = serde_json::to_string(&list.collect::<Vec<_>>())
                .map_err(|error| Failure::Output(error.to_string()))?;
            out.write_all((text + "\n").as_bytes())?;
        } else {
            for finding in &findings {
                let sign = if finding.good { "ok  " } else { "bad " };
                writeln!(out, "{sign} {}: {}", finding.subject, finding.found)?;
                if let Some(cure) = &finding.cure {
                    writeln!(out, "       do: {cure}")?;
                }
            }
        }
        let others = [
            &machine::DEV_MEM_ONLY[..],
            &[secure_world::SUBJECT, machine::PANFROST],
        ]
        .concat();
        let replays_here = findings
            .iter()
            .all(|finding| finding.good || others.contains(&finding.subject));
        let by_panfrost =
            |finding: &machine::Finding| finding.subject == machine::PANFROST && finding.good;
        Ok(
            if replays_here || replays_there || findings.iter().any(by_panfrost) {
                Outcome::Done
            } else {
                Outcome::Mismatch
            },
        )
    }
}
