// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay verify`: check a recording without a device.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use gpureplay_core::Rule;
use gpureplay_format::Section;

use crate::failure::{Failure, Outcome};
use crate::recording::Files;
use crate::trust::{Place, Trust};
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay verify recordings/*
  gpureplay verify --rules recordings/acl-gemm-g52";

/// Check recordings against all rules, without a device
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// Directories with a recording.gpr, such files, or packs
    #[arg(required = true)]
    recordings: Vec<PathBuf>,
    /// List the rules that are checked
    #[arg(long)]
    rules: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: Trust,
}

impl Verify {
    pub(crate) fn execute(&self) -> Result {
        let mut out = std::io::stdout().lock();
        let mut results = Vec::new();
        let mut first_failure = None;
        for path in &self.recordings {
            let started = Instant::now();
            let checked = Place::open(path, &self.trust).and_then(|place| {
                let files = Files::read(place.path())?;
                files.verify()?;
                Ok(files.bytes.len() as u64)
            });
            let time = started.elapsed();
            match checked {
                Ok(bytes) if !self.json => writeln!(
                    out,
                    "{}: sound ({} sections, {} rules, {} in {})",
                    path.display(),
                    Section::ALL.len() - 1,
                    Rule::ALL.len(),
                    text::bytes(bytes),
                    text::duration(time)
                )?,
                Ok(bytes) => results.push(serde_json::json!({
                    "recording": path, "sound": true, "bytes": bytes, "seconds": time.as_secs_f64(),
                })),
                Err(failure) => {
                    if self.json {
                        results.push(serde_json::json!({
                            "recording": path, "sound": false, "reason": failure.to_string(),
                        }));
                    } else if first_failure.is_some() {
                        eprintln!("gpureplay: {failure}");
                    }
                    first_failure.get_or_insert(failure);
                }
            }
        }
        if self.rules && !self.json {
            for rule in Rule::ALL {
                writeln!(out, "  {:22} {}", rule.name(), rule.demands().trim())?;
            }
        }
        if self.json {
            let text = serde_json::to_string_pretty(&results)
                .map_err(|error| Failure::Output(error.to_string()))?;
            writeln!(out, "{text}")?;
        }
        first_failure.map_or(Ok(Outcome::Done), Err)
    }
}
