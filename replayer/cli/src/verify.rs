// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay verify`: check a recording without a device.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use gpureplay_core::Rule;
use gpureplay_deep::DeepRule;
use gpureplay_format::Section;

use crate::failure::{Failure, Outcome};
use crate::reach::Reach;
use crate::trust::{Place, Trust};
use crate::{Result, text};
use gpureplay_library::Files;

const EXAMPLES: &str = "\
Examples:
  gpureplay verify recordings/*
  gpureplay verify --rules recordings/acl-gemm-g52
  gpureplay verify --deep recordings/digits-g52
      also what every job of it can read and write";

/// Check recordings against all rules, without a device
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// Directories with a recording.gpr, such files, or packs
    #[arg(required = true)]
    recordings: Vec<PathBuf>,
    /// Also walk every job chain: what descriptors point at, and what each shader can reach
    #[arg(long)]
    deep: bool,
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
                let verified = files.verify()?;
                let deep = self.deep.then(|| gpureplay_deep::check(&verified));
                let deep = deep
                    .transpose()
                    .map_err(|error| Failure::Recording(format!("{}: {error}", path.display())))?;
                let reach = deep.map(|report| Reach::new(verified.recording(), &report));
                Ok((files.bytes.len() as u64, reach))
            });
            let time = started.elapsed();
            match checked {
                Ok((bytes, reach)) if !self.json => {
                    writeln!(
                        out,
                        "{}: sound ({} sections, {} rules, {} in {})",
                        path.display(),
                        Section::ALL.len() - 1,
                        Rule::ALL.len() + reach.as_ref().map_or(0, |_| DeepRule::ALL.len()),
                        text::bytes(bytes),
                        text::duration(time)
                    )?;
                    if let Some(reach) = reach {
                        reach.print(&mut out)?;
                    }
                }
                Ok((bytes, reach)) => results.push(serde_json::json!({
                    "recording": path, "sound": true, "bytes": bytes, "seconds": time.as_secs_f64(), "jobs": reach,
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
            for rule in DeepRule::ALL {
                writeln!(
                    out,
                    "  {:22} {} (--deep)",
                    rule.name(),
                    rule.demands().trim()
                )?;
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
