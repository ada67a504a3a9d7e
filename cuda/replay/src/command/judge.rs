// SPDX-License-Identifier: MIT OR Apache-2.0
//! `judge`: a changed kernel against a recorded launch.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::command::attempt;
use crate::command::failure::{Failure, Outcome};
use crate::command::report::say_json;
use crate::command::run::{Checking, Evidence, NewSizes, TimesReport, read_image};
use crate::command::target::Target;
use crate::{
    Comparison, JitOptions, Loaded, Mask, Pieces, ReplayError, Second, Session, Sizes, Times,
    Useless, Variation, Verdict,
};

/// Check a changed kernel, and print a verdict as JSON
///
/// Tries the recorded inputs, results changed first, and a second input; then times it.
#[derive(Args)]
pub(crate) struct Judge {
    /// The launch.
    #[arg(value_name = "DIR#K")]
    target: Target,
    /// The changed kernel: a cubin, fatbin or PTX file.
    #[arg(long, value_name = "FILE")]
    image: PathBuf,
    /// Timed runs of both kernels.
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: u32,
    /// Decides the second input; another one each time without it.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    sizes: NewSizes,
    #[command(flatten)]
    checking: Checking,
}

const SHOWN: usize = 16;

/// What a changed kernel did, for programs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct JudgeReport {
    kernel: String,
    /// `right`, `differs`, `fails` or `inconclusive`.
    verdict: &'static str,
    /// Why it fails, or why nothing is known.
    reason: Option<String>,
    checks: Vec<CheckReport>,
    /// The first words that differ on the recorded inputs.
    differences: Vec<WordReport>,
    recorded: Option<TimesReport>,
    candidate: Option<TimesReport>,
    /// How many times as fast it is; above or below 1 by no more than both spread, it is as fast.
    speedup: Option<f64>,
    /// It is right, and faster by more than both spread.
    faster: bool,
    /// For `--seed`.
    seed: u64,
}

/// One comparison.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct CheckReport {
    /// `recorded inputs`, `changed results`, `changed inputs`, `permuted inputs`, `nudged inputs` or `after timing`.
    what: &'static str,
    /// `exact`, `within`, `differs`, `inconclusive` or `skipped`.
    verdict: &'static str,
    /// Why it was skipped.
    reason: Option<String>,
    /// How many elements differ.
    elements: Option<u64>,
    /// The first of them.
    first: Option<PlaceReport>,
}

/// Where an address lies.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct PlaceReport {
    address: String,
    /// The parameter that leads there.
    parameter: Option<usize>,
    /// Bytes from where the parameter points, or else from where its memory begins.
    offset: Option<u64>,
    /// The variable of the image that holds it.
    variable: Option<String>,
}

/// A word of four bytes that differs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct WordReport {
    place: PlaceReport,
    recorded: String,
    found: String,
}

/// Findings from before the recorded kernel failed on changed memory.
#[derive(Default, Serialize, Deserialize)]
struct Handed {
    seed: Option<u64>,
    no_evidence: Option<String>,
    /// Why variations show nothing.
    tried: Vec<String>,
    /// On another input, too, it writes the recorded results.
    is_constant: bool,
}

struct Reference {
    evidence: Option<Evidence>,
    second: Option<(Variation, Second)>,
    times: Times,
}

impl Judge {
    pub(crate) fn execute(&self) -> Outcome {
        let image = read_image(&self.image)?;
        let mut session = self.checking.session(&self.target)?;
        let Some(mask) = self.checking.mask(&mut session)? else {
            return Ok(ExitCode::SUCCESS);
        };
        let mut handed: Handed = attempt::handed_on()?.unwrap_or_default();
        let seed = *handed
            .seed
            .get_or_insert_with(|| self.seed.unwrap_or_else(|| fastrand::u64(..)));
        let how = self.checking.comparison();
        let mut report = JudgeReport {
            kernel: session.launch().kernel.clone(),
            verdict: "inconclusive",
            reason: None,
            checks: Vec::new(),
            differences: Vec::new(),
            recorded: None,
            candidate: None,
            speedup: None,
            faster: false,
            seed,
        };
        match self.reference(&mut session, (&how, &mask), &mut handed)? {
            Err(reason) => report.reason = Some(reason),
            Ok(reference) => {
                self.candidate(&mut session, &image, (&how, &mask), &reference, &mut report);
                report.note_skipped(&reference, &handed);
            }
        }
        report.conclude();
        say_json(&report)?;
        Ok(ExitCode::from(u8::from(report.verdict != "right")))
    }

    fn reference(
        &self,
        session: &mut Session,
        (how, mask): (&Comparison, &Mask),
        handed: &mut Handed,
    ) -> Result<Result<Reference, String>, Failure> {
        let mut evidence = None;
        if handed.no_evidence.is_none() {
            match self.checking.evidence(session, mask) {
                Ok(found) => evidence = found,
                Err(Failure::Poison(error)) => {
                    handed.no_evidence = Some(format!("the recorded kernel fails: {error}"));
                    return Err(attempt::hand_on(handed, None));
                }
                Err(failure) => return Err(failure),
            }
        }
        let loaded = session.load(None, JitOptions::default())?;
        let sizes = session.sizes();
        if let Verdict::Differs(difference) = session.run(&loaded, &sizes, how, mask)? {
            return Ok(Err(format!(
                "the recorded kernel itself differs here in {} elements; --mask 2 leaves out what differs from run to run",
                difference.elements
            )));
        }
        let times = session.time(&loaded, &sizes, self.runs)?;
        let mut second = None;
        if session.rewritten() > 0 {
            handed
                .tried
                .push("memory points at variables of the image".into());
        } else {
            let seed = handed.seed.unwrap_or_default();
            let all = [Variation::Permuted { seed }, Variation::Nudged];
            for variation in all.into_iter().skip(handed.tried.len()) {
                let found = session.second(&loaded, variation, how, mask);
                let reason = match found {
                    Ok(Ok(found)) => {
                        second = Some((variation, found));
                        break;
                    }
                    Ok(Err(useless)) => {
                        handed.is_constant |= useless == Useless::NoEffect;
                        useless.reason().to_owned()
                    }
                    Err(error) if error.ends_the_context() => {
                        let reason = format!("the recorded kernel fails on it: {error}");
                        handed.tried.push(format!("{}: {reason}", variation.word()));
                        return Err(attempt::hand_on(handed, None));
                    }
                    Err(error) => return Err(error.into()),
                };
                handed.tried.push(format!("{}: {reason}", variation.word()));
            }
        }
        session.unload(&loaded);
        Ok(Ok(Reference {
            evidence,
            second,
            times,
        }))
    }

    fn candidate(
        &self,
        session: &mut Session,
        image: &[u8],
        how: (&Comparison, &Mask),
        reference: &Reference,
        report: &mut JudgeReport,
    ) {
        report.recorded = TimesReport::of(&reference.times, self.checking.cache());
        let outcome = session.fill_shared_memory(true).and_then(|()| {
            let loaded = session.load(Some(image), JitOptions::default())?;
            let sizes = self.sizes.apply(session.sizes());
            self.checks(session, &loaded, &sizes, how, reference, report)
        });
        if let Err(error) = outcome {
            report.verdict = "fails";
            report.reason = Some(error.to_string());
        }
    }

    fn checks(
        &self,
        session: &Session,
        loaded: &Loaded,
        sizes: &Sizes,
        (how, mask): (&Comparison, &Mask),
        reference: &Reference,
        report: &mut JudgeReport,
    ) -> Result<(), ReplayError> {
        let pieces = Pieces::of(session.launch());
        let place = |address| PlaceReport::of(session, &pieces, address);
        let verdict = session.run(loaded, sizes, how, mask)?;
        if let Verdict::Differs(_) = verdict {
            let words = session.differing(loaded, SHOWN)?.into_iter();
            let word = |(address, recorded, found)| WordReport {
                place: place(address),
                recorded: format!("{recorded:08x}"),
                found: format!("{found:08x}"),
            };
            report.differences = words.map(word).collect();
        }
        let mut check = |what, verdict: Verdict| {
            report.checks.push(CheckReport::new(what, verdict, place));
        };
        check("recorded inputs", verdict);
        if let Some((variation, second)) = &reference.second {
            let what = match variation {
                Variation::Permuted { .. } => "permuted inputs",
                Variation::Nudged => "nudged inputs",
            };
            let verdict = session.run_second(loaded, sizes, how, mask, second)?;
            check(what, verdict);
        }
        if let Some(evidence) = &reference.evidence {
            let what = match evidence {
                Evidence::Poison(_) => "changed results",
                Evidence::Reaction(_) => "changed inputs",
            };
            check(what, evidence.run(session, loaded, sizes, how, mask)?);
        }
        // It may work at first, and rest when timed.
        let times = session.time(loaded, sizes, self.runs)?;
        if self.runs > 0 {
            check("after timing", session.compare(loaded, how, mask)?);
        }
        report.candidate = TimesReport::of(&times, self.checking.cache());
        if times.runs() > 0 && times.median() > 0.0 {
            let old = &reference.times;
            report.speedup = Some(old.median() / times.median());
            report.faster = times.median() + times.spread() + old.spread() < old.median();
        }
        Ok(())
    }
}

impl JudgeReport {
    fn note_skipped(&mut self, reference: &Reference, handed: &Handed) {
        let skipped = |what, reason: String| CheckReport {
            what,
            verdict: "skipped",
            reason: Some(reason),
            elements: None,
            first: None,
        };
        if reference.second.is_none() {
            self.checks
                .push(skipped("permuted inputs", handed.tried.join("; ")));
        }
        let has_others =
            reference.second.is_some() || matches!(reference.evidence, Some(Evidence::Reaction(_)));
        let differs = self.checks.iter().any(|check| check.verdict == "differs");
        if !has_others && !handed.is_constant && !differs {
            let reason = "no other input shows anything: a kernel that has the recorded results built in would pass too";
            self.reason.get_or_insert_with(|| reason.to_owned());
        }
        if reference.evidence.is_none() {
            let reason = handed.no_evidence.clone();
            let reason = reason.unwrap_or_else(|| "no word can be changed first".to_owned());
            self.checks.push(skipped("changed results", reason));
        }
    }

    fn conclude(&mut self) {
        let has = |words: &[&str]| {
            let mut checks = self.checks.iter();
            checks.any(|check| words.contains(&check.verdict))
        };
        if has(&["differs"]) {
            self.verdict = "differs";
        } else if self.verdict != "fails" && self.reason.is_none() && has(&["exact", "within"]) {
            self.verdict = "right";
        } else if self.verdict != "fails" && self.reason.is_none() {
            self.reason = Some("a kernel that does nothing would pass too".to_owned());
        }
        self.faster &= self.verdict == "right";
    }
}

impl CheckReport {
    fn new(what: &'static str, verdict: Verdict, place: impl Fn(u64) -> PlaceReport) -> Self {
        let difference = match verdict {
            Verdict::Differs(difference) => Some(difference),
            _ => None,
        };
        Self {
            what,
            verdict: verdict.word(),
            reason: None,
            elements: difference.map(|difference| difference.elements),
            first: difference.map(|difference| place(difference.first)),
        }
    }
}

impl PlaceReport {
    fn of(session: &Session, pieces: &Pieces, address: u64) -> Self {
        let found = pieces.find(address);
        let launch = session.launch();
        let piece = found.and_then(|found| launch.pieces().nth(found.piece));
        let variable = piece.and_then(|piece| piece.owner.variable());
        let parameter = found.and_then(|found| found.parameter);
        Self {
            address: format!("{address:#x}"),
            parameter: parameter.map(|(index, _)| index),
            offset: parameter
                .map(|(_, offset)| offset)
                .or(found.map(|found| found.offset)),
            variable: variable.map(str::to_owned),
        }
    }
}
