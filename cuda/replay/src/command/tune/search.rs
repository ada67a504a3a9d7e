// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads, verifies and times candidates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use crate::{Loaded, Mask, ReplayError, Session, Sizes, Verdict};
use gpureplay_cuda_launch::recording::Evidence;

use super::learn::Order;
use super::space::{Candidate, Grids, Space};
use super::tries::{HEADER, Tries, Try};
use super::triton::Own;
use super::words::Sampler;
use super::{Handed, Tune, TuneReport, winner};
use crate::command::attempt;
use crate::command::failure::{Failure, Outcome, write};
use crate::command::report::{note, say, say_json};
use crate::command::run;

pub(super) struct Search<'a> {
    pub(super) options: &'a Tune,
    pub(super) session: Session,
    pub(super) images: Vec<(String, Vec<u8>)>,
    pub(super) own: BTreeMap<String, Own>,
    pub(super) mask: Mask,
    pub(super) evidence: Option<run::Evidence>,
    pub(super) tries: Tries,
    pub(super) handed: Handed,
    pub(super) began: Instant,
}

/// Loaded image, or why not; with the first candidate that needed it.
type Current = Option<(Candidate, Result<Loaded, ReplayError>)>;

impl Search<'_> {
    pub(super) fn run(mut self) -> Outcome {
        let recorded = self.recorded();
        let candidates = self.candidates(&recorded)?;
        if self.handed.time.is_zero() && !self.options.is_json() {
            say!("{HEADER}");
        }
        self.begin(&recorded)?;
        let mut current: Current = None;
        // Narrowed-down ways are all tried.
        let (sampler, budget) = match self.options.ways() {
            Some(_) => (Sampler::All, None),
            None => (self.options.sampler, self.options.budget),
        };
        let mut order = Order::new(sampler, &candidates);
        while let Some(candidate) = order.next(&self.tries) {
            let time = self.handed.time + self.began.elapsed();
            if let Some(budget) = budget
                && budget.is_spent(self.handed.tries, time)
            {
                let known = candidates.iter().filter(|one| self.tries.knows(one));
                note!(
                    "the budget is spent: {} of {} candidates were tried",
                    known.count(),
                    candidates.len()
                );
                break;
            }
            let is_there = matches!(&current, Some((last, _)) if last.is_loaded_as(candidate));
            if !is_there {
                if let Some((_, Ok(loaded))) = current.take() {
                    self.session.unload(&loaded);
                }
                let loaded = self.load(candidate);
                current = Some((candidate.clone(), loaded));
            }
            match &current {
                Some((_, Ok(loaded))) => {
                    let (one, error) = self.one(loaded, candidate);
                    self.push(one)?;
                    if error.is_some_and(|error| error.ends_the_context()) {
                        return Err(self.hand_on(None));
                    }
                }
                Some((_, Err(error))) => {
                    let reason = error.to_string();
                    self.push(Try::new(candidate.clone(), 0, Err(reason)))?;
                }
                None => {}
            }
        }
        self.conclude(&recorded, candidates.len())
    }

    fn recorded(&self) -> Candidate {
        let Sizes { grid, block, .. } = self.session.sizes();
        Candidate::recorded(grid, block)
    }

    fn candidates(&self, recorded: &Candidate) -> Result<Vec<Candidate>, Failure> {
        let options = self.options;
        let own = [recorded.block];
        let images = self.images.iter().map(|(name, _)| name.as_str());
        let space = Space {
            images: std::iter::once(Candidate::RECORDED).chain(images).collect(),
            registers: &options.registers,
            optimisation: &options.optimisation,
            bounds: &options.bounds.0,
            carveouts: &options.carveout,
            blocks: options.blocks.as_ref().map_or(&own, |blocks| &blocks.0),
            grids: match &options.grids {
                Some(grids) => Grids::Given(&grids.0),
                None if options.keep_grid => Grids::Kept,
                None => Grids::Adapted,
            },
        };
        let mut candidates = space.candidates(self.session.sizes())?;
        for one in &mut candidates {
            if let Some(own) = self.own.get(&one.image) {
                one.block = [own.threads, 1, 1];
                if options.grids.is_none() {
                    one.grid = recorded.grid;
                }
            }
        }
        let mut seen = BTreeSet::new();
        candidates
            .retain(|one| one != recorded && options.is_asked_for(one) && seen.insert(one.clone()));
        options.sampler.order(&mut candidates);
        candidates.insert(0, recorded.clone());
        Ok(candidates)
    }

    fn load(&mut self, candidate: &Candidate) -> Result<Loaded, ReplayError> {
        let image = image(&self.images, candidate);
        let mut loaded = self.session.load(image, candidate.options())?;
        if let Ok(percent) = u32::try_from(candidate.carveout)
            && let Err(error) = loaded.prefer_shared(self.session.gpu(), percent)
        {
            self.session.unload(&loaded);
            return Err(error);
        }
        Ok(loaded)
    }

    /// The time to beat; shows whether memory held the results.
    fn begin(&mut self, recorded: &Candidate) -> Result<(), Failure> {
        let mut again = true;
        loop {
            let loaded = self.load(recorded)?;
            let (one, error) = self.one(&loaded, recorded);
            self.session.unload(&loaded);
            if again && one.is_inconclusive() {
                again = false;
                self.evidence = match self
                    .options
                    .checking
                    .evidence(&mut self.session, &self.mask)
                {
                    Err(Failure::Poison(error)) => {
                        note!(
                            "with memory changed before the launch: {error}; going on in another process with --no-poison"
                        );
                        return Err(self.hand_on(Some("--no-poison")));
                    }
                    evidence => evidence?,
                };
                if self.evidence.is_some() {
                    continue;
                }
            }
            if !self.tries.knows(recorded) {
                self.push(one)?;
            }
            return match error {
                Some(error) if error.ends_the_context() => Err(error.into()),
                _ => Ok(()),
            };
        }
    }

    fn shared(&self, candidate: &Candidate) -> u32 {
        let own = self.own.get(&candidate.image);
        own.map_or(self.session.sizes().shared, |own| own.shared)
    }

    fn one(&self, loaded: &Loaded, candidate: &Candidate) -> (Try, Option<ReplayError>) {
        let sizes = Sizes {
            grid: candidate.grid,
            block: candidate.block,
            shared: self.shared(candidate),
        };
        let how = self.options.checking.comparison();
        let run = || {
            let mut verdict = self.session.run(loaded, &sizes, &how, &self.mask)?;
            if let (Some(evidence), Verdict::Inconclusive) = (&self.evidence, verdict) {
                verdict = evidence.run(&self.session, loaded, &sizes, &how, &self.mask)?;
            }
            let times = self.session.time(loaded, &sizes, self.options.runs)?;
            Ok((verdict, times))
        };
        let (result, error) = match run() {
            Ok(result) => (Ok(result), None),
            Err(error) => (Err(ReplayError::to_string(&error)), Some(error)),
        };
        let registers = loaded.limits().registers;
        (Try::new(candidate.clone(), registers, result), error)
    }

    fn push(&mut self, one: Try) -> Result<(), Failure> {
        if !self.options.is_json() {
            say!("{}", one.csv().trim_end());
        }
        self.handed.tries += 1;
        self.tries.push(one)
    }

    /// Hands on to another process: this context launches nothing more.
    fn hand_on(&self, more: Option<&str>) -> Failure {
        let handed = Handed {
            time: self.handed.time + self.began.elapsed(),
            ..self.handed.clone()
        };
        attempt::hand_on(&handed, more)
    }

    fn conclude(&self, recorded: &Candidate, candidates: usize) -> Outcome {
        if let Some(path) = &self.options.table {
            let lines = self.tries.all.iter().map(Try::csv);
            write(path, &format!("{HEADER}\n{}", lines.collect::<String>()))?;
        }
        let base = self.tries.right(recorded);
        let best = self.tries.best(recorded, |_| true);
        if self.options.is_json() {
            let report = TuneReport {
                kernel: &self.session.launch().kernel,
                gpu: &self.session.gpu().info().name,
                candidates,
                tries: &self.tries.all,
                best: best.map(|(best, _)| best),
                speedup: best.map(|(_, speedup)| speedup),
            };
            say_json(&report)?;
        } else {
            match (base, best) {
                (None, _) => {
                    say!("the recorded launch does not replay right: nothing is compared with it");
                }
                (Some(_), Some((best, speedup))) => say!(
                    "best: {:.2} us ({speedup:.2} times as fast as recorded): {}",
                    best.median_us.unwrap_or_default(),
                    best.candidate.words()
                ),
                (Some(_), None) => {
                    say!("nothing is faster than the recorded launch by more than the spread");
                }
            }
        }
        if let (Some(path), Some(base)) = (self.options.tuned(), base) {
            self.write_winner(path, recorded, base)?;
        }
        Ok(ExitCode::from(u8::from(base.is_none())))
    }

    fn write_winner(
        &self,
        path: &Path,
        recorded: &Candidate,
        recorded_us: [f64; 2],
    ) -> Result<(), Failure> {
        let is_asked_for = |one: &Candidate| {
            self.options.is_asked_for(one) && winner::is_for_programs(&self.session, one)
        };
        let best = self.tries.best(recorded, is_asked_for);
        let Some((best, tuned_us)) = best.and_then(|(best, _)| Some((best, best.right()?))) else {
            note!(
                "{}: nothing is added, since no candidate that a program can be given is faster",
                path.display()
            );
            return Ok(());
        };
        let evidence = Evidence {
            verdict: best.verdict.clone(),
            runs: self.options.runs,
            tries: self.tries.all.len() as u64,
            driver: self.session.gpu().info().driver,
            recorded_us,
            tuned_us,
        };
        let image = image(&self.images, &best.candidate);
        let shared = self.shared(&best.candidate);
        winner::write(path, &self.session, (image, shared), best, evidence)?;
        note!("{}: {}", path.display(), best.candidate.words());
        Ok(())
    }
}

fn image<'a>(images: &'a [(String, Vec<u8>)], candidate: &Candidate) -> Option<&'a [u8]> {
    let (_, image) = images.iter().find(|(name, _)| *name == candidate.image)?;
    Some(image)
}
