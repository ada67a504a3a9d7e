// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds memory that a run writes before reading.
//!
//! A trial replays with other bytes there. If outputs and other memory stay, nothing read them; a part that then
//! has its usual bytes was written whole. Only such parts are left out. Weights stay.

use std::ops::Range;

use gpureplay_cuda_launch::recording::Store;

use super::{How, RunSession};
use crate::ReplayError;

/// In bytes.
const PART: usize = 256;
/// Memory undecided by then is kept.
const MOST_TRIALS: usize = 200;
/// In bytes. Smaller tensors may be positions and counters, which lead kernels outside memory if changed.
const LEAST: usize = 16 << 10;
/// Sets of so few parts are not halved further.
const FEW: usize = 256;

type Part = (usize, usize);

/// Piece, and bytes in it.
pub type LeftOut = Vec<(usize, Range<usize>)>;

struct Trials<'a> {
    session: &'a mut RunSession,
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
    count: usize,
}

fn part(piece: &[u8], number: usize) -> &[u8] {
    let begin = number * PART;
    &piece[begin..(begin + PART).min(piece.len())]
}

impl Trials<'_> {
    /// Memory after a run with other bytes in parts; `None` if outputs change.
    fn changed(&mut self, parts: &[Part]) -> Result<Option<Vec<Vec<u8>>>, ReplayError> {
        self.count += 1;
        let mut held = self.before.clone();
        for (piece, number) in parts {
            let after = &self.after[*piece];
            let range = number * PART..((number + 1) * PART).min(after.len());
            for (to, from) in held[*piece][range.clone()].iter_mut().zip(&after[range]) {
                *to = !from;
            }
        }
        self.session.source.put(held);
        self.session.restore()?;
        self.session.execute(How::Graph)?;
        if !self.session.is_as_recorded() {
            return Ok(None);
        }
        self.session.memory().map(Some)
    }

    /// `parts` ascend.
    fn search(&mut self, parts: &[Part], found: &mut Vec<Part>) -> Result<(), ReplayError> {
        if parts.is_empty() || self.count >= MOST_TRIALS {
            return Ok(());
        }
        if let Some(now) = self.changed(parts)? {
            let mut others = now.iter().zip(&self.after).enumerate();
            let is_apart = others.all(|(piece, (now, after))| {
                let all = now.chunks(PART).zip(after.chunks(PART)).enumerate();
                let mut differ = all.filter(|(_, (now, after))| now != after);
                differ.all(|(number, _)| parts.binary_search(&(piece, number)).is_ok())
            });
            if is_apart {
                let whole = |(piece, number): &&Part| {
                    part(&now[*piece], *number) == part(&self.after[*piece], *number)
                };
                found.extend(parts.iter().filter(whole));
                return Ok(());
            }
        }
        if parts.len() > FEW {
            let (one, other) = parts.split_at(parts.len() / 2);
            self.search(one, found)?;
            self.search(other, found)?;
        }
        Ok(())
    }
}

impl RunSession {
    /// Parts written before read, for the recorded inputs; none if outputs or memory are not reproduced, or memory
    /// holds variables' addresses. Restores memory, with zeros in the parts.
    ///
    /// # Errors
    /// The recording is damaged, the driver refuses, or an operation fails.
    pub fn written_first(&mut self, store: &Store) -> Result<LeftOut, ReplayError> {
        if self.rewritten > 0 {
            return Ok(Vec::new());
        }
        self.hold()?;
        let mut before = self.source.held().to_vec();
        for (piece, memory) in before.iter_mut().zip(&self.run.memory) {
            // Allocations of the run have no contents.
            piece.resize(usize::try_from(memory.size).unwrap_or(0), 0);
        }
        let mut trials = Trials {
            session: self,
            before,
            after: Vec::new(),
            count: 0,
        };
        let (Some(after), Some(again)) = (trials.changed(&[])?, trials.changed(&[])?) else {
            return Ok(Vec::new());
        };
        // Later turns show parts that the recorded inputs leave with the bytes they had.
        let turns = trials.session.run.turns.clone();
        let inputs = trials.session.ports.inputs().to_vec();
        let run = &trials.session.run;
        let numbers = run.numbers.iter().map(|number| run.number(number, None));
        let numbers: Vec<u32> = numbers.collect();
        trials.session.reproduces(store, &turns, How::Graph)?;
        let later = trials.session.memory()?;
        for (number, value) in numbers.into_iter().enumerate() {
            trials.session.set_number(number, value);
        }
        for (number, input) in inputs.iter().enumerate() {
            trials.session.set_input(number, input)?;
        }
        trials.after = after;
        let tensors = trials.session.run.tensors.iter();
        let places = tensors.flat_map(|one| one.places.iter().map(|at| (*at, at + one.size)));
        let mut tensors: Vec<(u64, u64)> = places.collect();
        tensors.sort_unstable();
        let mut parts = Vec::new();
        for (piece, memory) in trials.session.run.memory.iter().enumerate() {
            if memory.contents.is_none() {
                continue;
            }
            let count = trials.before[piece].len().div_ceil(PART);
            // If weights are known, parts outside of tensors may be computed: they are tried, too.
            let others = |number: &usize| {
                let begin = memory.address + (number * PART) as u64;
                let end = begin + PART as u64;
                let next = tensors.partition_point(|tensor| tensor.1 <= begin);
                !tensors.is_empty() && tensors.get(next).is_none_or(|tensor| tensor.0 >= end)
            };
            let changes = |number: &usize| {
                let [before, after, again, later] = [&trials.before, &trials.after, &again, &later]
                    .map(|all| part(&all[piece], *number));
                let is_zero = || before.iter().all(|byte| *byte == 0);
                after == again
                    && (before != after || after != later || (others(number) && !is_zero()))
            };
            let changing: Vec<usize> = (0..count).filter(changes).collect();
            let runs = changing.chunk_by(|one, next| one + 1 == *next);
            let large = runs.filter(|run| run.len() * PART >= LEAST);
            parts.extend(large.flatten().map(|number| (piece, *number)));
        }
        let noisy = trials.after != again;
        let mut found = Vec::new();
        if !noisy {
            trials.search(&parts, &mut found)?;
        }
        let mut left_out: LeftOut = Vec::new();
        let mut before = std::mem::take(&mut trials.before);
        for (piece, number) in found {
            let end = ((number + 1) * PART).min(before[piece].len());
            let range = number * PART..end;
            before[piece][range.clone()].fill(0);
            match left_out.last_mut() {
                Some((last, known)) if *last == piece && known.end == range.start => {
                    known.end = end
                }
                _ => left_out.push((piece, range)),
            }
        }
        self.source.put(before);
        self.restore()?;
        Ok(left_out)
    }
}
