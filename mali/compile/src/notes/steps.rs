// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeated steps, such as of training: what one leaves for the next.
//!
//! A recording holds one step. The second recorded step goes on from memory objects given to both, with bytes that it
//! reads, the first step wrote, and neither the app nor the second step wrote since.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use gpureplay_trace::note::Direction;

use super::error::ProposeError;
use super::events::{Event, Events, Given, Host, Launched, Root};
use super::looped;
use super::naming;
use super::place::{Work, locate};
use crate::capture::Capture;
use crate::pages::Moment;
use crate::touched::{Bytes, Touched};

/// The first of several like steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Recorded steps, at least two.
    pub turns: usize,
    /// Submissions before the second step.
    pub jobs: usize,
    /// Before the second step, for [`Capture::until`].
    pub notes: usize,
    pub(super) first: usize,
    period: usize,
}

/// Left for the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// GPU address.
    pub va: u64,
    /// Bytes.
    pub size: u64,
    /// Kernel and argument that first use it.
    pub name: String,
    /// The argument's type.
    pub type_name: String,
}

/// The repeated step with which a trace ends; reads after the last one do not matter.
pub fn first_turn(capture: &Capture) -> Option<Turn> {
    turn_of(&Events::of(capture))
}

fn turn_of(events: &Events) -> Option<Turn> {
    let list = events.list.as_slice();
    let reads =
        |event: &&Event| matches!(event, Event::Host(host) if host.direction == Direction::Read);
    let trailing = list.iter().rev().take_while(reads).count();
    let ends = || (list.len() - trailing..=list.len()).rev();
    let by = |sizes: bool| {
        let mut turns = looped::Turns::new(list, sizes);
        ends().find_map(|end| Some((end, turns.find(end)?)))
    };
    // `kept` refuses different sizes if steps go on from each other.
    let (end, found) = by(true).or_else(|| by(false))?;
    let second = found.first + (end - found.last);
    Some(Turn {
        turns: found.turns,
        jobs: list.get(second)?.jobs(),
        notes: *events.note_indices.get(second)?,
        first: found.first,
        period: end - found.last,
    })
}

/// What the first step leaves. `touched`: each submission's reads and writes.
///
/// # Errors
/// It leaves something, and the second step has another argument or size: a recording would repeat the first one's.
pub fn kept(capture: &Capture, touched: &[Touched]) -> Result<Vec<Kept>, ProposeError> {
    let events = Events::of(capture);
    let Some(turn) = turn_of(&events) else {
        return Ok(Vec::new());
    };
    let steps = |number: usize| {
        let start = turn.first + number * turn.period;
        events
            .list
            .get(start..start + turn.period)
            .unwrap_or_default()
    };
    let (first, second) = (steps(0), steps(1));
    let begin = first.first().map_or(0, Event::jobs);
    let after = turn.first + 2 * turn.period;
    let end = events
        .list
        .get(after)
        .map_or(capture.jobs.len(), Event::jobs);
    let written = first.iter().chain(second).filter_map(|event| match event {
        Event::Host(host) if host.direction != Direction::Read => Some(host.at.object),
        Event::Moved(moved) => Some(moved.to.object),
        _ => None,
    });
    let written_by_host: BTreeSet<u32> = written.collect();
    let work = Work::default();
    let mut transfers: BTreeMap<u32, Vec<&Host>> = BTreeMap::new();
    for event in &events.list {
        if let Event::Host(host) = event {
            transfers.entry(host.at.object).or_default().push(host);
        }
    }
    let mut givens: BTreeMap<u32, (&Launched, &Given)> = BTreeMap::new();
    for event in first {
        if let Event::Launch(launch) = event {
            for given in &launch.given {
                givens.entry(given.object).or_insert((launch, given));
            }
        }
    }
    // Another object may now lie in an old one's place.
    let given_again = second.iter().filter_map(|event| match event {
        Event::Launch(launch) => Some(launch.given.iter().map(|given| given.object)),
        _ => None,
    });
    let given_again: BTreeSet<u32> = given_again.flatten().collect();
    let taken = taken(touched, begin..turn.jobs, turn.jobs..end);
    let mut out = Vec::new();
    for (object, root) in &events.roots {
        if root.image || written_by_host.contains(object) || !given_again.contains(object) {
            continue;
        }
        let Some((launch, given)) = givens.get(object) else {
            continue;
        };
        let moved = transfers.get(object).map_or(&[][..], Vec::as_slice);
        let Some(va) = place(capture, moved, root, &work) else {
            continue;
        };
        if taken.any_in(va, va.saturating_add(root.size)) {
            out.push(Kept {
                va,
                size: root.size,
                name: naming::name(launch, given),
                type_name: given.type_name.clone(),
            });
        }
    }
    work.was_enough()?;
    // If nothing is left, each step is an inference of its own.
    if !out.is_empty() {
        same_numbers(first, second)?;
        same_sizes(first, second)?;
    }
    Ok(out)
}

fn same_numbers(first: &[Event], second: &[Event]) -> Result<(), ProposeError> {
    for pair in first.iter().zip(second) {
        let (Event::Launch(a), Event::Launch(b)) = pair else {
            continue;
        };
        if let Some(argument) = a.other_number(b) {
            return Err(ProposeError::Step {
                launch: a.id,
                kernel: a.kernel.clone(),
                argument,
            });
        }
    }
    Ok(())
}

fn same_sizes(first: &[Event], second: &[Event]) -> Result<(), ProposeError> {
    let mut pairs = first.iter().zip(second);
    match pairs.find(|(a, b)| !a.is_like_but_for_objects(b)) {
        None => Ok(()),
        Some((a, b)) => Err(ProposeError::StepSize {
            first: a.to_string(),
            second: b.to_string(),
        }),
    }
}

/// Where an object lies: by content, or else in the buffer mapped when the object was made.
fn place(capture: &Capture, transfers: &[&Host], root: &Root, work: &Work) -> Option<u64> {
    let moment = |host: &Host| match host.direction {
        Direction::Read => host.jobs.checked_sub(1).map(Moment::after),
        _ => (host.jobs < capture.jobs.len()).then(|| Moment::before(host.jobs)),
    };
    let found = transfers
        .iter()
        .filter_map(|host| {
            let located = locate(capture, root, host, moment(host)?, work)?;
            located.va.checked_sub(host.at.offset)
        })
        .next();
    let mapped = root.mapped.filter(|buffer| buffer.size >= root.size);
    found.or(mapped.map(|buffer| buffer.va))
}

/// Read by the second step, last written by the first.
fn taken(touched: &[Touched], first: Range<usize>, second: Range<usize>) -> Bytes {
    let of = |step: Range<usize>| touched.get(step).unwrap_or_default().iter();
    let (mut left, mut taken) = (Bytes::default(), Bytes::default());
    of(first).for_each(|job| left.add(&job.written));
    for job in of(second) {
        taken.add(&left.common(&job.read));
        left.remove(&job.written);
    }
    taken
}
