// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the runtime's CPU copies, which a replay does not repeat.
//!
//! A copy of host data is a host write. A copy of kernel results is a read if only the host reads it; if a launch
//! does, the trace is refused: [`Followed::refusal`]. A copy by a GPU job is a launch.

mod depends;
mod follower;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use gpureplay_trace::PAGE_SIZE;
use gpureplay_trace::note::{Direction, Place, content_hash};

use super::error::ProposeError;
use super::events::{Event, Events, Given, Host, Launched, Moved, Span};
use super::place::{Work, locate};
use crate::capture::{Buffer, Capture};
use crate::pages::Moment;

pub(super) use depends::{Depends, dependencies};

const PAGE: u64 = PAGE_SIZE as u64;
/// Steps of [`Work`] for each kept part: more than looking at it.
const PART_WORK: u64 = 64;

type Run<'a> = (&'a Capture, &'a Events);

/// Bytes of a write, whole or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Origin {
    pub(super) step: usize,
    pub(super) offset: u64,
    pub(super) size: u64,
}

#[derive(Clone, Debug)]
struct Broken {
    copy: usize,
    call: String,
    writer: Option<usize>,
    reader: usize,
    argument: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// Copies of other writes, by step.
    pub(super) origins: BTreeMap<usize, Origin>,
    /// Writes that are copied or copies.
    pub(super) carried: BTreeSet<usize>,
    pub(super) remarks: Vec<String>,
    /// A result read through a copy was not found.
    pub(super) lost: bool,
    broken: Vec<Broken>,
}

#[derive(Clone, Debug)]
enum Is {
    Job,
    /// Parts in order; none unless all are known.
    Write(Vec<Origin>),
    Read(Span, Hash),
}

#[derive(Clone, Copy, Debug)]
enum Hash {
    /// The same bytes as this step's transfer.
    Of(usize),
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Host(usize),
    /// Filled, or copied from unwritten memory.
    Constant(usize),
    Copied(usize),
    Computed(usize),
}

impl Source {
    fn step(self) -> usize {
        match self {
            Source::Host(step)
            | Source::Constant(step)
            | Source::Copied(step)
            | Source::Computed(step) => step,
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Start to end and source; without overlaps.
    parts: BTreeMap<u64, (u64, Source)>,
    launches: BTreeMap<(u64, u64), usize>,
    /// It holds a copy of something computed.
    computed: bool,
}

impl Known {
    fn within(&self, start: u64, end: u64) -> Vec<(u64, u64, Source)> {
        let before = self.parts.range(..=start).next_back();
        let after = self
            .parts
            .range((Bound::Excluded(start), Bound::Excluded(end.max(start))));
        let all = before.into_iter().chain(after);
        all.filter(|(_, (to, _))| *to > start)
            .map(|(from, (to, source))| ((*from).max(start), (*to).min(end), *source))
            .filter(|(from, to, _)| from < to)
            .collect()
    }

    fn set(&mut self, start: u64, end: u64, source: Source) {
        if start >= end {
            return;
        }
        let old: Vec<u64> = self.parts.range(..end).map(|(from, _)| *from).collect();
        // Backwards: the first that ends before the range ends the search.
        for from in old.into_iter().rev() {
            let Some((to, source)) = self.parts.get(&from).copied() else {
                continue;
            };
            if to <= start {
                break;
            }
            self.parts.remove(&from);
            if from < start {
                self.parts.insert(from, (start, source));
            }
            if to > end {
                self.parts.insert(end, (to, source));
            }
        }
        self.parts.insert(start, (end, source));
    }

    fn launched(&self, (start, end): (u64, u64), since: Option<usize>) -> Option<usize> {
        let overlap = self.launches.iter().filter(|((low, high), step)| {
            *low < end && start < *high && since.is_none_or(|since| **step > since)
        });
        overlap.map(|(_, step)| *step).max()
    }
}

/// The second run has the same steps.
pub(super) fn follow(
    (capture, events): (&Capture, &mut Events),
    second: Option<(&Capture, &mut Events)>,
    work: &Work,
) -> Followed {
    let is_copy = |event: &Event| matches!(event, Event::Moved(moved) if moved.from.is_some());
    if !events.list.iter().any(is_copy) {
        return Followed::default();
    }
    let mut follower = Follower {
        first: (capture, events),
        second: second
            .as_ref()
            .map(|(capture, events)| (*capture, &**events)),
        work,
        objects: HashMap::new(),
        roots: HashMap::new(),
        writers: HashMap::new(),
        reads: Vec::new(),
        read_by_launch: BTreeSet::new(),
        is: BTreeMap::new(),
        out: Followed::default(),
    };
    for step in 0..follower.first.1.list.len() {
        follower.step(step);
    }
    follower.read_back();
    let Follower {
        is,
        out,
        reads,
        first,
        second: other,
        ..
    } = follower;
    let changed = |run: Run<'_>| -> Vec<(usize, Event)> {
        let event = |(step, is): (&usize, &Is)| Some((*step, become_of(run, *step, is, work)?));
        is.iter().filter_map(event).collect()
    };
    let (ours, theirs) = (changed(first), other.map(changed));
    let followed: Vec<usize> = reads
        .iter()
        .filter(|read| read.found)
        .map(|read| read.step)
        .collect();
    put(events, ours, &followed);
    if let (Some((_, events)), Some(theirs)) = (second, theirs) {
        put(events, theirs, &followed);
    }
    out
}

fn put(events: &mut Events, changed: Vec<(usize, Event)>, followed: &[usize]) {
    for (step, event) in changed {
        if let Some(place) = events.list.get_mut(step) {
            *place = event;
        }
    }
    for step in followed {
        if let Some(Event::Host(host)) = events.list.get_mut(*step) {
            host.kept = true;
        }
    }
}

fn become_of((capture, events): Run<'_>, step: usize, is: &Is, work: &Work) -> Option<Event> {
    let Some(Event::Moved(moved)) = events.list.get(step) else {
        return None;
    };
    let hash_of = |step: usize| match events.list.get(step) {
        Some(Event::Host(host)) => host.hash,
        _ => None,
    };
    let host = |direction, span: Span, hash| {
        Event::Host(Host {
            direction,
            at: Place {
                object: span.object,
                offset: span.start,
            },
            size: span.size().unwrap_or(0),
            hash,
            jobs: moved.jobs,
            kept: false,
        })
    };
    Some(match is {
        Is::Job => Event::Launch(job(moved)),
        Is::Write(origins) => {
            let hash = match origins.as_slice() {
                [only] if is_whole(events, *only) => hash_of(only.step),
                origins => {
                    let parts = origins
                        .iter()
                        .map(|origin| part((capture, events), *origin, work));
                    let parts: Option<Vec<_>> = parts.collect();
                    let all = parts.filter(|parts| !parts.is_empty());
                    all.map(|parts| content_hash(&parts.concat()))
                }
            };
            host(Direction::Write, moved.to, hash)
        }
        Is::Read(span, Hash::Of(read)) => host(Direction::Read, *span, hash_of(*read)),
        Is::Read(span, Hash::Memory) => {
            let moment = Moment::after(moved.jobs.checked_sub(1)?);
            if !work.spend(1 + span.size()? / PART_WORK) {
                return None;
            }
            let bytes = bytes(capture, events, *span, moment);
            host(
                Direction::Read,
                *span,
                bytes.map(|bytes| content_hash(&bytes)),
            )
        }
    })
}

fn is_whole(events: &Events, origin: Origin) -> bool {
    match events.list.get(origin.step) {
        Some(Event::Host(host)) => origin.offset == 0 && origin.size == host.size,
        _ => false,
    }
}

fn part((capture, events): Run<'_>, origin: Origin, work: &Work) -> Option<Vec<u8>> {
    let Event::Host(host) = events.list.get(origin.step)? else {
        return None;
    };
    let root = events.roots.get(&host.at.object)?;
    let found = locate(capture, root, host, Moment::before(host.jobs), work)?;
    let start = usize::try_from(origin.offset).ok()?;
    let end = usize::try_from(origin.offset.checked_add(origin.size)?).ok()?;
    found.bytes.get(start..end).map(<[u8]>::to_vec)
}

fn job(moved: &Moved) -> Launched {
    let given = |index, span: Span, name: &str, type_name: &str| Given {
        object: span.object,
        bytes: span.start..span.end,
        index,
        name: name.to_owned(),
        type_name: type_name.to_owned(),
    };
    let source = moved.from.map(|from| given(0, from, "from", "const "));
    let target = given(1, moved.to, "to", "");
    Launched {
        id: u32::MAX,
        kernel: moved.call.clone(),
        global: [0; 3],
        jobs: moved.jobs,
        given: source.into_iter().chain([target]).collect(),
        scalars: Vec::new(),
    }
}

/// Where an object lies, if the driver mapped a buffer of its size when it was made.
fn mapped(events: &Events, object: u32) -> Option<Buffer> {
    let root = events.roots.get(&object)?;
    let pages = root.size.checked_next_multiple_of(PAGE)?;
    root.mapped
        .filter(|buffer| root.image || buffer.size == pages)
}

fn bytes(capture: &Capture, events: &Events, span: Span, moment: Moment) -> Option<Vec<u8>> {
    let buffer = mapped(events, span.object)?;
    let size = span.size()?;
    let known = (capture.memory.known() as u64).saturating_mul(PAGE);
    if span.end > buffer.size || size > known {
        return None;
    }
    let mut out = vec![0; usize::try_from(size).ok()?];
    let whole = capture
        .memory
        .read(moment, buffer.va.checked_add(span.start)?, &mut out);
    whole.then_some(out)
}

struct ReadBack {
    step: usize,
    parts: Vec<(usize, Span)>,
    found: bool,
}

struct Follower<'a> {
    first: Run<'a>,
    second: Option<Run<'a>>,
    work: &'a Work,
    objects: HashMap<u32, Known>,
    /// Per copy of a result: the first copy, and which of its bytes; `None` if not contiguous.
    roots: HashMap<usize, Option<(usize, Span)>>,
    writers: HashMap<usize, usize>,
    reads: Vec<ReadBack>,
    read_by_launch: BTreeSet<usize>,
    is: BTreeMap<usize, Is>,
    out: Followed,
}
