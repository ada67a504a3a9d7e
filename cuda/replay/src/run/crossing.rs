// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a run holds for other turns: a second turn runs with the first one's parameters.
//!
//! Turns also differ in unread words such as padding, so only the replay counts. Where it differs, words are halved
//! until those that matter are left.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_cuda_launch::recording::{
    Number, Operation, Run, Store, Turn, differing, put_word, word_at,
};

use super::{How, RunSession};
use crate::ReplayError;

/// In bytes.
const PAGE: usize = 64 << 10;
/// Words undecided by then are taken to matter.
const MOST_TRIALS: usize = 600;

/// Words that change alike: one number or address.
#[derive(Clone, Debug)]
pub struct Held {
    /// Operation and offset of each, in bytes.
    pub places: Vec<[u32; 2]>,
    /// In the first, the second, and later turns.
    pub values: Vec<u64>,
}

/// Comparison of two turns.
#[derive(Clone, Debug, Default)]
pub struct Crossing {
    /// Differing words, no addresses.
    pub words: usize,
    /// Numbers that results depend on.
    pub numbers: Vec<Held>,
    /// Differing addresses.
    pub addresses: usize,
    /// Those that outputs depend on.
    pub slots: Vec<Held>,
    /// Replays.
    pub trials: usize,
    /// Pages not compared, as replays differ.
    pub noisy: usize,
}

type Pages = BTreeSet<(usize, usize)>;

fn is_address(run: &Run, word: u64) -> bool {
    let after = run.memory.partition_point(|memory| memory.address <= word);
    let memory = after.checked_sub(1).and_then(|at| run.memory.get(at));
    memory.is_some_and(|memory| word < memory.address + memory.size)
        || run
            .variables
            .iter()
            .any(|variable| (variable.address..variable.address + variable.size).contains(&word))
}

fn differences(first: &[Operation], run: &Run) -> [Vec<Held>; 2] {
    let later: Vec<BTreeMap<[u32; 2], u32>> = run
        .turns
        .iter()
        .map(|turn: &Turn| {
            let words = turn.words.iter();
            words
                .map(|[number, at, value]| ([*number, *at], *value))
                .collect()
        })
        .collect();
    let mut kinds: [BTreeMap<Vec<u64>, Vec<[u32; 2]>>; 2] = Default::default();
    for [number, at, second] in differing(first, &run.operations) {
        let one = first[number as usize].host_bytes();
        let other = run.operations[number as usize].host_bytes();
        let whole = at & !7;
        let long = |bytes: &[u8]| {
            let [low, high] = [0, 4].map(|half| word_at(bytes, whole as usize + half));
            u64::from(high) << 32 | u64::from(low)
        };
        if is_address(run, long(&one)) || is_address(run, long(&other)) {
            let places = kinds[1].entry(vec![long(&one), long(&other)]).or_default();
            if !places.contains(&[number, whole]) {
                places.push([number, whole]);
            }
            continue;
        }
        let later = later
            .iter()
            .map(|words| *words.get(&[number, at]).unwrap_or(&second));
        let values = [word_at(&one, at as usize), second];
        let values = values.into_iter().chain(later).map(u64::from).collect();
        kinds[0].entry(values).or_default().push([number, at]);
    }
    kinds.map(|kind| {
        let all = kind.into_iter();
        all.map(|(values, places)| Held { places, values })
            .collect()
    })
}

struct Bench<'a> {
    session: &'a mut RunSession,
    own: Vec<Operation>,
    after: Vec<Vec<u8>>,
    noisy: Pages,
    trials: usize,
}

impl Bench<'_> {
    fn changed(&self) -> Result<Pages, ReplayError> {
        let mut pages = Pages::new();
        for (piece, (now, after)) in self.session.memory()?.iter().zip(&self.after).enumerate() {
            let both = now.chunks(PAGE).zip(after.chunks(PAGE)).enumerate();
            let others = both.filter(|(_, (now, after))| now != after);
            pages.extend(others.map(|(page, _)| (piece, page)));
        }
        Ok(pages)
    }

    fn with(&self, first: &[Operation], held: &[&Held], size: u32) -> Vec<Operation> {
        let mut operations = self.own.clone();
        for [number, at] in held.iter().flat_map(|held| &held.places) {
            let from = first[*number as usize].host_bytes();
            let mut bytes = operations[*number as usize].host_bytes();
            for at in (*at..*at + size).step_by(4) {
                put_word(&mut bytes, at as usize, word_at(&from, at as usize));
            }
            operations[*number as usize].set_host_bytes(&bytes);
        }
        operations
    }

    fn run(&mut self, operations: Vec<Operation>) -> Result<(), ReplayError> {
        self.trials += 1;
        self.session.swap_operations(operations);
        self.session.restore()?;
        self.session.execute(How::Launches)
    }

    fn search<'h>(
        &mut self,
        held: &[&'h Held],
        matters: &mut impl FnMut(&mut Self, &[&Held]) -> Result<bool, ReplayError>,
        found: &mut Vec<&'h Held>,
    ) -> Result<(), ReplayError> {
        if held.is_empty() || !matters(self, held)? {
            return Ok(());
        }
        if held.len() == 1 || self.trials >= MOST_TRIALS {
            found.extend(held);
            return Ok(());
        }
        let before = found.len();
        let (one, other) = held.split_at(held.len() / 2);
        self.search(one, matters, found)?;
        self.search(other, matters, found)?;
        if found.len() == before {
            // They matter only together.
            found.extend(held);
        }
        Ok(())
    }
}

/// Compares the session's second turn with the first one's operations; the session keeps the second's. `None` if
/// the second turn is not reproduced twice.
///
/// # Errors
/// The driver refuses, or an operation fails.
pub fn cross(
    session: &mut RunSession,
    first: &[Operation],
) -> Result<Option<Crossing>, ReplayError> {
    let [words, addresses] = differences(first, &session.run);
    session.hold()?;
    let own = session.run.operations.clone();
    let mut bench = Bench {
        session,
        own,
        after: Vec::new(),
        noisy: Pages::new(),
        trials: 0,
    };
    for turn in 0..2 {
        bench.run(bench.own.clone())?;
        if !bench.session.is_as_recorded() {
            return Ok(None);
        }
        if turn == 0 {
            bench.after = bench.session.memory()?;
        } else {
            bench.noisy = bench.changed()?;
        }
    }
    let count = |held: &[Held]| held.iter().map(|held| held.places.len()).sum();
    let mut crossing = Crossing {
        words: count(&words),
        addresses: count(&addresses),
        noisy: bench.noisy.len(),
        ..Crossing::default()
    };
    let all: Vec<&Held> = words.iter().collect();
    let mut numbers = Vec::new();
    bench.search(
        &all,
        &mut |bench, held| {
            bench.run(bench.with(first, held, 4))?;
            Ok(!bench.session.is_as_recorded()
                || bench
                    .changed()?
                    .iter()
                    .any(|page| !bench.noisy.contains(page)))
        },
        &mut numbers,
    )?;
    // Other addresses move results: compare outputs only.
    let all: Vec<&Held> = addresses.iter().collect();
    let mut slots = Vec::new();
    bench.search(
        &all,
        &mut |bench, held| {
            bench.run(bench.with(first, held, 8))?;
            Ok(!bench.session.is_as_recorded())
        },
        &mut slots,
    )?;
    crossing.numbers = numbers.into_iter().cloned().collect();
    crossing.slots = slots.into_iter().cloned().collect();
    crossing.trials = bench.trials;
    let own = std::mem::take(&mut bench.own);
    session.swap_operations(own);
    Ok(Some(crossing))
}

impl RunSession {
    /// Takes operations of the same structure and their numbers; restores memory.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn adopt(
        &mut self,
        operations: Vec<Operation>,
        numbers: Vec<Number>,
    ) -> Result<(), ReplayError> {
        self.swap_operations(operations);
        self.run.numbers = numbers;
        self.restore()
    }

    /// Turns reproduced before the first wrong one, each continuing from memory. The last's inputs and numbers stay.
    ///
    /// # Errors
    /// Damaged bytes, the driver refuses, or an operation fails.
    pub fn reproduces(
        &mut self,
        store: &Store,
        turns: &[Turn],
        how: How,
    ) -> Result<usize, ReplayError> {
        for (done, turn) in turns.iter().enumerate() {
            for number in 0..self.run.numbers.len() {
                let value = self.run.number(&self.run.numbers[number], Some(turn));
                self.set_number(number, value);
            }
            let mut sizes = self.run.inputs.iter().map(|port| port.size);
            let bytes = turn.inputs.iter().zip(&mut sizes);
            let bytes = bytes.map(|(hash, size)| store.get(*hash, size));
            for (port, bytes) in bytes.collect::<Result<Vec<_>, _>>()?.iter().enumerate() {
                self.set_input(port, bytes)?;
            }
            self.execute(how)?;
            let sizes = self.run.outputs.iter().map(|port| port.size);
            for (port, (hash, size)) in turn.outputs.iter().zip(sizes).enumerate() {
                if store.get(*hash, size)? != self.output(port) {
                    return Ok(done);
                }
            }
        }
        Ok(turns.len())
    }
}
