// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay doctor`: what this machine offers for a replay on its own GPU.

use std::io::Write;
use std::path::Path;

use clap::Args;
use gpureplay_linux::machine;

use crate::Result;
use crate::failure::Outcome;

const EXAMPLES: &str = "\
Examples:
  sudo gpureplay doctor
  gpureplay doctor --json

Ends with 0 when a replay with --device nano can start, with 1 when something stands in its way.";

/// Say what this machine offers for a replay on its own GPU, and what to do about what is missing
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn execute(&self) -> Result {
        let findings = machine::doctor(Path::new("/"));
        let mut out = std::io::stdout().lock();
        if self.json {
            let list: Vec<_> = findings
                .iter()
                .map(|finding| {
                    serde_json::json!({
                        "subject": finding.subject,
                        "good": finding.good,
                        "found": finding.found,
                        "cure": finding.cure,
                    })
                })
                .collect();
            writeln!(out, "{}", serde_json::Value::from(list))?;
        } else {
            for finding in &findings {
                let sign = if finding.good { "ok  " } else { "bad " };
                writeln!(out, "{sign} {}: {}", finding.subject, finding.found)?;
                if let Some(cure) = &finding.cure {
                    writeln!(out, "       do: {cure}")?;
                }
            }
        }
        let ready = findings
            .iter()
            .all(|finding| finding.good || finding.subject == machine::DEV_MEM);
        Ok(if ready {
            Outcome::Done
        } else {
            Outcome::Mismatch
        })
    }
}
