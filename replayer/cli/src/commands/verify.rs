// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay verify`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use gpureplay_core::Rule;
use gpureplay_format::Section;
use gpureplay_library::Verified;
use gpureplay_retarget::{Options, TargetRule, fits};
use mali_jobs::walk::DeepRule;
use serde::Serialize;

use crate::common::constant;
use crate::common::deep_report::Reach;
use crate::common::failure::{Failure, Outcome};
use crate::common::gpu_argument::{Gpu, gpu};
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;
use crate::{Result, text};
use gpureplay_library::host_rules::HostRule;
use gpureplay_library::{Files, Recording, escaped, json_path, shown};

const EXAMPLES: &str = "\
Examples:
  gpureplay verify recordings/*
  gpureplay verify --rules
  gpureplay verify --deep recordings/digits-g52
      also what every job of it can read and write
  gpureplay verify --deep --for rk3566 recordings/*
      which of them could run on the GPU of this board: instructions, limits, formats, storage";

/// Check a recording without running it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// Directories with a recording.gpr, such files, or packs
    #[arg(required_unless_present = "rules")]
    recordings: Vec<PathBuf>,
    /// Also walk every job chain: what descriptors point at, and what each shader can reach
    #[arg(long)]
    deep: bool,
    /// The GPU, or a board that has it, on which the jobs are to run as they are; `gpureplay retarget` also changes them
    #[arg(long = "for", value_name = "GPU|BOARD", requires = "deep", value_parser = gpu)]
    target: Option<Gpu>,
    /// With --for: allow architecture versions 6 and 7 to be mixed; never seen on silicon
    #[arg(long, requires = "target")]
    mix_versions: bool,
    /// List the rules that are checked; needs no recording
    #[arg(long)]
    rules: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustOptions,
}

/// What was found out about one recording.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Checked {
    #[serde(serialize_with = "json_path::one")]
    #[cfg_attr(test, schemars(with = "PathBuf"))]
    recording: PathBuf,
    sound: bool,
    /// Why it is not sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Size of the file, if it is sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// How long the check took, if it is sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// Whose signature it has, which is not checked without a key, or why that is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    /// Outputs that are the same for all inputs, with `--deep`: nothing that computes them reads one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    constant_outputs: Vec<String>,
    /// What its jobs can reach, with `--deep`.
    jobs: Option<Reach>,
    /// Jobs that are not among them, as all together would have more than 65,536 lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs_left_out: Option<usize>,
}

/// One rule, for `--rules`.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct RuleReport {
    rule: &'static str,
    demands: &'static str,
    /// Only `--deep` checks it.
    deep: bool,
}

impl Verify {
    pub(crate) fn execute(&self) -> Result {
        let mut out = terminal::stdout();
        let mut results = Vec::new();
        let mut failed = None;
        for path in &self.recordings {
            let started = Instant::now();
            let checked = self.trust.read().and_then(|trust| {
                let files = Files::look(path, &trust)?;
                let view = files.view()?;
                let verified = files.verify(&view)?;
                let deep = self.deep.then(|| verified.deep());
                let deep = deep
                    .transpose()
                    .map_err(|error| Failure::Recording(format!("{}: {error}", shown(path))))?;
                // Drops the report: it is not held beside those of other GPUs.
                let reach = deep.map(|report| Reach::new(verified.recording(), &report));
                self.fits(path, &verified)?;
                self.variants(&files)?;
                let missing = files.missing();
                if !missing.is_empty() {
                    let missing = missing.iter().map(|file| shown(&files.shown(file)));
                    return Err(Failure::Input(format!(
                        "{}: the recording is sound, but files that its manifest names are missing: {}",
                        shown(path),
                        missing.collect::<Vec<_>>().join(", ")
                    )));
                }
                // With a key the signature has been checked.
                let seal = match trust.key {
                    Some(_) => None,
                    None => files.seal().map(|seal| seal.to_string()),
                };
                let bytes = files.bytes.len() as u64;
                let constant = match self.deep {
                    true => constant::remarks(&Recording::from_files(files)?),
                    false => Vec::new(),
                };
                for (_, remark) in &constant {
                    terminal::note(format!("{}: {remark}", shown(path)));
                }
                Ok((bytes, reach, seal, constant))
            });
            let time = started.elapsed();
            match checked {
                Ok((bytes, reach, seal, _)) if !self.json => {
                    writeln!(
                        out,
                        "{}: sound ({} sections, {} rules, {} in {})",
                        shown(path),
                        Section::ALL.len() - 1,
                        Rule::ALL.len()
                            + HostRule::ALL.len()
                            + reach.as_ref().map_or(0, |_| DeepRule::ALL.len()),
                        text::bytes(bytes),
                        text::duration(time)
                    )?;
                    if let Some(seal) = seal {
                        writeln!(out, "  {}", escaped(&seal))?;
                    }
                    if let Some(reach) = reach {
                        reach.print(&mut out)?;
                    }
                }
                Ok((bytes, reach, seal, constant)) => results.push(Checked {
                    recording: path.clone(),
                    sound: true,
                    reason: None,
                    bytes: Some(bytes),
                    seconds: Some(time.as_secs_f64()),
                    signature: seal,
                    constant_outputs: constant.into_iter().map(|(name, _)| name).collect(),
                    jobs_left_out: reach.as_ref().and_then(Reach::left_out),
                    jobs: reach,
                }),
                Err(failure) => {
                    if self.json {
                        results.push(Checked {
                            recording: path.clone(),
                            sound: false,
                            reason: Some(failure.to_string()),
                            bytes: None,
                            seconds: None,
                            signature: None,
                            constant_outputs: Vec::new(),
                            jobs: None,
                            jobs_left_out: None,
                        });
                    }
                    // Errors keep the recordings' order.
                    if let Some(earlier) = failed.replace(failure) {
                        terminal::note(format!("{earlier}"));
                    }
                }
            }
        }
        if self.json {
            match self.recordings.is_empty() {
                true => terminal::json(&mut out, &rules())?,
                false => terminal::json(&mut out, &results)?,
            }
        } else if self.rules {
            print_rules(&mut out)?;
        }
        failed.map_or(Ok(Outcome::Done), Err)
    }
}

impl Verify {
    fn variants(&self, files: &Files) -> Result<()> {
        let manifest = files.manifest.iter();
        for variant in manifest.flat_map(|manifest| &manifest.variants) {
            let files = files.variant(variant)?;
            let view = files.view()?;
            let verified = files.verify(&view)?;
            if self.deep {
                verified.deep_only().map_err(|error| {
                    Failure::Recording(format!("{}: {error}", shown(&files.path)))
                })?;
            }
        }
        Ok(())
    }

    fn fits(&self, path: &Path, verified: &Verified<'_>) -> Result<()> {
        let Some(gpu) = &self.target else {
            return Ok(());
        };
        let options = Options {
            mix_versions: self.mix_versions,
            ..Options::default()
        };
        let chains = verified
            .chains()
            .map_err(|error| Failure::Recording(format!("{}: {error}", shown(path))))?;
        fits(chains, gpu.profile, &options).map_err(|refusal| {
            let path = shown(path);
            Failure::Recording(format!("{path} for {}: {refusal}", gpu.name))
        })?;
        Ok(())
    }
}

/// Name, demand, only `--deep`.
fn all_rules() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    let rules = Rule::ALL.iter();
    let rules = rules.map(|rule| (rule.name(), rule.meaning().trim(), false));
    let host = HostRule::ALL.iter();
    let rules = rules.chain(host.map(|rule| (rule.name(), rule.meaning().trim(), false)));
    let deep = DeepRule::ALL.iter();
    let rules = rules.chain(deep.map(|rule| (rule.name(), rule.meaning().trim(), true)));
    let target = TargetRule::ALL.iter();
    rules.chain(target.map(|rule| (rule.name(), rule.meaning().trim(), true)))
}

fn rules() -> Vec<RuleReport> {
    all_rules()
        .map(|(rule, demands, deep)| RuleReport {
            rule,
            demands,
            deep,
        })
        .collect()
}

fn print_rules(out: &mut impl Write) -> Result<()> {
    for (name, demands, deep) in all_rules() {
        let only = if deep { " (--deep)" } else { "" };
        writeln!(out, "  {name:22} {demands}{only}")?;
    }
    Ok(())
}
