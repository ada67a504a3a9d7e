// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows what the runtime copies between memory objects on the CPU, which a replay does not repeat.
//!
//! A copy of what the host wrote is a write of the host to another place. A copy of what a kernel computed is a read, if only the host reads
//! it. If a launch reads it, the trace cannot be replayed: [`Followed::refusal`]. A copy that is a job of the GPU is a launch like any other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use gpureplay_trace::PAGE_SIZE;
use gpureplay_trace::note::{Direction, Place, content_hash};

use super::error::ProposeError;
use super::events::{Event, Events, Given, Host, Launched, Moved, Span};
use super::place::{Work, locate};
use crate::capture::{Buffer, Capture};
use crate::pages::Moment;

const PAGE: u64 = PAGE_SIZE as u64;
/// Work that a part of a copy or a read counts as which is kept: more than looking at it.
const PART_WORK: u64 = 64;

/// A run of the app.
type Run<'a> = (&'a Capture, &'a Events);

/// Where the bytes of a write by a copy come from: another write, whole or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Origin {
    /// Step of the write.
    pub(super) step: usize,
    /// Bytes of it that are left out at its start.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) size: u64,
}

/// A launch reads what a copy took from another one.
#[derive(Clone, Debug)]
struct Broken {
    copy: usize,
    call: String,
    /// The step that computed it.
    writer: Option<usize>,
    reader: usize,
    argument: String,
}

/// What becomes of the steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// Writes that are copies of other writes, by step.
    pub(super) origins: BTreeMap<usize, Origin>,
    /// Writes that are copied, and writes that are copies.
    pub(super) carried: BTreeSet<usize>,
    /// What could not be told, for people.
    pub(super) remarks: Vec<String>,
    /// The host reads something computed through a copy, and it was not found.
    pub(super) lost: bool,
    broken: Vec<Broken>,
}

/// What a copy turns out to be.
#[derive(Clone, Debug)]
enum Is {
    /// A job of the GPU.
    Job,
    /// The host's data: the writes that they come from, in order; none if that is not known of all.
    Write(Vec<Origin>),
    /// Read by the host from the source.
    Read(Span, Hash),
}

/// Where the hash of bytes comes from.
#[derive(Clone, Copy, Debug)]
enum Hash {
    /// A transfer has them too, whole.
    Of(usize),
    /// The trace's memory has them.
    Memory,
}

/// Who wrote bytes last, launches left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Host(usize),
    /// Filled, or copied from what was never written.
    Constant(usize),
    /// A copy on the CPU of the host's data.
    Copied(usize),
    /// A copy on the CPU of what a kernel computed.
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

/// What is known of an object's bytes.
#[derive(Debug, Default)]
struct Known {
    /// Ends and sources by where they start; they do not overlap.
    parts: BTreeMap<u64, (u64, Source)>,
    /// The last step that may have written a range.
    launches: BTreeMap<(u64, u64), usize>,
    /// A copy of something computed was put here.
    computed: bool,
}

impl Known {
    /// The parts of a range that have a source, each cut to the range.
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
        // From the last one down: the first that ends before the range ends the search.
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

    /// The last step after `since` that may have written some of a range.
    fn launched(&self, (start, end): (u64, u64), since: Option<usize>) -> Option<usize> {
        let overlap = self.launches.iter().filter(|((low, high), step)| {
            *low < end && start < *high && since.is_none_or(|since| **step > since)
        });
        overlap.map(|(_, step)| *step).max()
    }
}

/// Follows the copies of a run, and turns those that are something else into that; the second run has the same steps.
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
        refused: BTreeSet::new(),
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

/// The step that a copy is in a run.
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

/// Whether nothing of a write is left out.
fn is_whole(events: &Events, origin: Origin) -> bool {
    match events.list.get(origin.step) {
        Some(Event::Host(host)) => origin.offset == 0 && origin.size == host.size,
        _ => false,
    }
}

/// A part of what the host wrote.
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

/// A copy that the GPU does, as a launch.
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

/// Bytes of an object at a moment.
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

/// A read by the host of what came by copies from launches.
struct ReadBack {
    step: usize,
    /// The copies that took it from where it was computed, and which bytes.
    parts: Vec<(usize, Span)>,
    found: bool,
}

struct Follower<'a> {
    first: Run<'a>,
    second: Option<Run<'a>>,
    work: &'a Work,
    objects: HashMap<u32, Known>,
    /// By copy of something computed: the copy that took it from where it was computed, and which bytes; `None` if they are no run.
    roots: HashMap<usize, Option<(usize, Span)>>,
    /// By copy of something computed: the step that computed it.
    writers: HashMap<usize, usize>,
    reads: Vec<ReadBack>,
    /// Copies that a launch reads.
    refused: BTreeSet<usize>,
    is: BTreeMap<usize, Is>,
    out: Followed,
}

impl Follower<'_> {
    fn step(&mut self, step: usize) {
        let (_, events) = self.first;
        let Some(event) = events.list.get(step) else {
            return;
        };
        if !self.work.spend(event.work() as u64) {
            return;
        }
        match event {
            Event::Host(host) => {
                let end = match host.size {
                    0 => u64::MAX,
                    size => host.at.offset.saturating_add(size),
                };
                let (object, start) = (host.at.object, host.at.offset);
                match host.direction {
                    Direction::Read => self.read(step, object, (start, end)),
                    _ => self.set(object, (start, end), Source::Host(step)),
                }
            }
            Event::Launch(launch) => self.launch(step, launch),
            Event::Moved(moved) => match moved.from {
                None => {
                    let to = moved.to;
                    self.set(to.object, (to.start, to.end), Source::Constant(step));
                }
                Some(_) if self.is_job(moved) => {
                    self.is.insert(step, Is::Job);
                    self.launch(step, &job(moved));
                }
                Some(from) => self.copy(step, moved, from),
            },
        }
    }

    fn set(&mut self, object: u32, (start, end): (u64, u64), source: Source) {
        let known = self.objects.entry(object).or_default();
        if self.work.spend(known.parts.len() as u64) {
            known.set(start, end, source);
        }
    }

    fn launch(&mut self, step: usize, launch: &Launched) {
        for given in &launch.given {
            let Some(known) = self.objects.get(&given.object) else {
                self.may_write(step, given);
                continue;
            };
            // Most objects are no copies.
            let parts = match known.computed && self.work.spend(known.parts.len() as u64) {
                true => known.within(given.bytes.start, given.bytes.end),
                false => Vec::new(),
            };
            for (_, _, source) in parts {
                if let Source::Computed(copy) = source {
                    self.refuse(copy, step, given);
                }
            }
            self.may_write(step, given);
        }
    }

    fn may_write(&mut self, step: usize, given: &Given) {
        if !given.is_constant() {
            let known = self.objects.entry(given.object).or_default();
            let range = (given.bytes.start, given.bytes.end);
            known.launches.insert(range, step);
        }
    }

    /// One launch is told of each copy.
    fn refuse(&mut self, copy: usize, reader: usize, given: &Given) {
        if !self.refused.insert(copy) {
            return;
        }
        let Some(Event::Moved(moved)) = self.first.1.list.get(copy) else {
            return;
        };
        self.out.broken.push(Broken {
            copy,
            call: moved.call.clone(),
            writer: self.writers.get(&copy).copied(),
            reader,
            argument: match given.name.as_str() {
                "" => given.index.to_string(),
                name => name.to_owned(),
            },
        });
    }

    /// Whether the GPU does a copy: a submission of the runtime changes the place that it goes to.
    fn is_job(&mut self, moved: &Moved) -> bool {
        let (capture, events) = self.first;
        let first = events.unnamed.partition_point(|at| *at < moved.own.start);
        let own = events.unnamed.get(first..).unwrap_or_default().iter();
        let own: Vec<usize> = own
            .copied()
            .take_while(|at| *at < moved.own.end && self.work.spend(1))
            .collect();
        if own.is_empty() {
            return false;
        }
        let Some(buffer) = mapped(events, moved.to.object) else {
            self.out.remarks.push(format!(
                "whether the GPU or the CPU does {} to object {} is not known; a replay repeats it only if the GPU does",
                moved.call, moved.to.object
            ));
            return true;
        };
        let start = buffer.va.saturating_add(moved.to.start);
        let end = buffer.va.saturating_add(moved.to.end.min(buffer.size));
        own.into_iter()
            .any(|job| self.gpu_wrote(capture, (start, end), job))
    }

    /// Whether a job changed bytes at these addresses.
    fn gpu_wrote(&self, capture: &Capture, (start, end): (u64, u64), job: usize) -> bool {
        let moment = Moment::after(job);
        let pages = capture.memory.changed(moment);
        let mut pages = pages.range(start - start % PAGE..end.max(start));
        pages.any(|page| {
            let changed = capture.memory.difference(moment, *page).into_iter();
            self.work.spend(PAGE / 64)
                && changed
                    .map(|(from, to)| (page + from as u64, page + to as u64))
                    .any(|(from, to)| from < end && start < to)
        })
    }

    /// Whether the GPU changed bytes of an object between two steps; `None` if nobody knows where they are.
    fn changed(
        &self,
        (capture, events): Run<'_>,
        (object, start, end): (u32, u64, u64),
        (since, until): (usize, usize),
    ) -> Option<bool> {
        let jobs = |step: usize| Some(events.list.get(step)?.jobs());
        let Event::Host(host) = events.list.get(since)? else {
            return None;
        };
        let root = events.roots.get(&object)?;
        let found = locate(capture, root, host, Moment::before(host.jobs), self.work)?;
        let at = |offset: u64| (found.va.checked_sub(host.at.offset)?).checked_add(offset);
        let range = (at(start)?, at(end.min(root.size))?);
        let mut jobs = jobs(since)?..jobs(until)?;
        Some(jobs.any(|job| self.work.spend(1) && self.gpu_wrote(capture, range, job)))
    }

    /// The step that computed some of a range, if one did; a kernel may be given memory to write and only read it.
    fn computed(&self, object: u32, (start, end): (u64, u64), at: usize) -> Option<usize> {
        let known = self.objects.get(&object)?;
        if !self
            .work
            .spend((known.launches.len() + known.parts.len()) as u64)
        {
            return None;
        }
        let mut covered = start;
        let mut found = None;
        for (from, to, source) in known.within(start, end) {
            if from > covered {
                found = found.max(known.launched((covered, from), None));
            }
            covered = to;
            let since = source.step();
            if let Source::Computed(copy) = source {
                found = found.max(Some(self.writers.get(&copy).copied().unwrap_or(copy)));
            }
            let Some(writer) = known.launched((from, to), Some(since)) else {
                continue;
            };
            let runs = [Some(self.first), self.second];
            let wrote = runs.into_iter().flatten().any(|run| {
                let changed = self.changed(run, (object, from, to), (since, at));
                changed.unwrap_or(true)
            });
            if wrote {
                found = found.max(Some(writer));
            }
        }
        // What nobody but a kernel wrote.
        if covered < end {
            found = found.max(known.launched((covered, end), None));
        }
        found
    }

    fn copy(&mut self, step: usize, moved: &Moved, from: Span) {
        let to = moved.to;
        let range = (from.start, from.end);
        let parts = match self.objects.get(&from.object) {
            Some(known) if self.work.spend(known.parts.len() as u64) => {
                known.within(range.0, range.1)
            }
            _ => Vec::new(),
        };
        let only = match parts.as_slice() {
            [(start, end, source)] if moved.dense && (*start, *end) == range => Some(*source),
            _ => None,
        };
        let source = if let Some(writer) = self.computed(from.object, range, step) {
            self.writers.insert(step, writer);
            let root = match only {
                Some(Source::Computed(copy)) => self
                    .roots
                    .get(&copy)
                    .copied()
                    .flatten()
                    .and_then(|(root, span)| Some((root, self.shifted(copy, span, from)?))),
                _ => moved.dense.then_some((step, from)),
            };
            self.roots.insert(step, root);
            Source::Computed(step)
        } else if parts
            .iter()
            .any(|(_, _, source)| matches!(source, Source::Host(_) | Source::Copied(_)))
        {
            if !self.work.spend(PART_WORK * parts.len() as u64) {
                return;
            }
            let mut covered = range.0;
            let origins = parts.iter().map(|(start, end, source)| {
                let gap = covered != *start;
                covered = *end;
                let part = Span {
                    object: from.object,
                    start: *start,
                    end: *end,
                };
                self.origin(*source, part).filter(|_| !gap)
            });
            let origins: Option<Vec<Origin>> = origins.collect();
            let sources = parts.iter().map(|(_, _, source)| source.step());
            self.out.carried.extend(sources.chain([step]));
            let whole = moved.dense && covered == range.1;
            let origins = origins.filter(|_| whole).unwrap_or_default();
            if let [only] = origins.as_slice() {
                self.out.origins.insert(step, *only);
            }
            self.is.insert(step, Is::Write(origins));
            Source::Copied(step)
        } else {
            Source::Constant(step)
        };
        let known = self.objects.entry(to.object).or_default();
        known.computed |= matches!(source, Source::Computed(_));
        self.set(to.object, (to.start, to.end), source);
    }

    /// What a part of the place that a copy went to was, where it came from.
    fn shifted(&self, copy: usize, source: Span, part: Span) -> Option<Span> {
        let Some(Event::Moved(moved)) = self.first.1.list.get(copy) else {
            return None;
        };
        let start = part.start.checked_sub(moved.to.start)?;
        let start = source.start.checked_add(start)?;
        Some(Span {
            object: source.object,
            start,
            end: start.checked_add(part.size()?)?,
        })
    }

    /// Which write these bytes come from.
    fn origin(&self, source: Source, from: Span) -> Option<Origin> {
        let size = from.size()?;
        match (source, self.first.1.list.get(source.step())?) {
            (Source::Host(step), Event::Host(host)) => Some(Origin {
                step,
                offset: from.start.checked_sub(host.at.offset)?,
                size,
            }),
            (Source::Copied(step), Event::Moved(moved)) => {
                let origin = self.out.origins.get(&step)?;
                let offset = from.start.checked_sub(moved.to.start)?;
                Some(Origin {
                    step: origin.step,
                    offset: origin.offset.checked_add(offset)?,
                    size,
                })
            }
            _ => None,
        }
    }

    /// The host reads: of what came by copies from launches, the source is what it reads.
    fn read(&mut self, step: usize, object: u32, (start, end): (u64, u64)) {
        let Some(known) = self.objects.get(&object).filter(|known| known.computed) else {
            return;
        };
        if !self
            .work
            .spend((known.parts.len() + known.launches.len()) as u64)
        {
            return;
        }
        let found = known.within(start, end);
        let copies = |(_, _, source): &(u64, u64, Source)| matches!(source, Source::Computed(_));
        if !found.iter().any(copies) || !self.work.spend(PART_WORK * found.len() as u64) {
            return;
        }
        let mut parts = Vec::new();
        let mut covered = start;
        for (from, to, source) in found {
            let later = known.launched((from, to), Some(source.step()));
            let part = match source {
                Source::Computed(copy) if from == covered && later.is_none() => {
                    let root = self.roots.get(&copy).copied().flatten();
                    let part = Span {
                        object,
                        start: from,
                        end: to,
                    };
                    root.and_then(|(root, span)| Some((root, self.shifted(copy, span, part)?)))
                }
                _ => None,
            };
            covered = to;
            parts.push(part);
        }
        let whole = covered == end;
        let parts: Option<Vec<_>> = parts.into_iter().collect();
        self.reads.push(ReadBack {
            step,
            parts: parts.filter(|_| whole).unwrap_or_default(),
            found: false,
        });
    }

    /// Makes reads of the copies through which the host reads what launches computed.
    fn read_back(&mut self) {
        let (capture, events) = self.first;
        let mut wanted: BTreeMap<usize, (Span, Hash)> = BTreeMap::new();
        let mut reads = std::mem::take(&mut self.reads);
        for read in &mut reads {
            let Some(Event::Host(host)) = events.list.get(read.step) else {
                continue;
            };
            let mut all = Vec::new();
            for (copy, span) in &read.parts {
                let jobs = events.list.get(*copy).map_or(0, Event::jobs);
                let moment = jobs.checked_sub(1).map(Moment::after);
                let size = span.size().unwrap_or(0) / 64;
                let part = moment
                    .filter(|_| self.work.spend(1 + size))
                    .and_then(|moment| bytes(capture, events, *span, moment));
                let Some(part) = part else {
                    all.clear();
                    break;
                };
                all.extend(part);
            }
            let known = host.hash.is_some() && host.hash == Some(content_hash(&all));
            read.found = known || (read.parts.len() == 1 && host.hash.is_some() && all.is_empty());
            if !read.found {
                self.out.lost = true;
                let call = read
                    .parts
                    .first()
                    .and_then(|(copy, _)| events.list.get(*copy));
                let call = match call {
                    Some(Event::Moved(moved)) => moved.call.as_str(),
                    _ => "a copy",
                };
                self.out.remarks.push(format!(
                    "the app reads {} bytes of object {}, which {call} put there from what a kernel computed, and which were not found at their source: let it read the source, or name the file with --writes",
                    host.size, host.at.object
                ));
                continue;
            }
            for (copy, span) in &read.parts {
                let hash = match read.parts.len() {
                    1 => Hash::Of(read.step),
                    _ => Hash::Memory,
                };
                let new = wanted.get(copy).map_or((*span, hash), |(old, _)| {
                    let union = Span {
                        object: span.object,
                        start: span.start.min(old.start),
                        end: span.end.max(old.end),
                    };
                    match union == *span {
                        true => (union, hash),
                        false => (union, Hash::Memory),
                    }
                });
                wanted.insert(*copy, new);
            }
        }
        self.reads = reads;
        for (copy, (span, hash)) in wanted {
            self.is.insert(copy, Is::Read(span, hash));
        }
    }
}

/// Whose values an object's content depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depends {
    pub(super) inputs: bool,
    pub(super) weights: bool,
}

impl Depends {
    fn or(self, other: Self) -> Self {
        Self {
            inputs: self.inputs || other.inputs,
            weights: self.weights || other.weights,
        }
    }
}

/// By step: for a read by the host what its object depends on, for a copy what its source does. A launch is taken to pass on all that it is given.
/// `of` says what a write brings.
pub(super) fn dependencies(
    events: &Events,
    of: impl Fn(usize, &Host) -> Depends,
) -> BTreeMap<usize, Depends> {
    let mut out = BTreeMap::new();
    let mut objects: HashMap<u32, Depends> = HashMap::new();
    let known = |objects: &HashMap<u32, Depends>, object: u32| {
        objects.get(&object).copied().unwrap_or_default()
    };
    for (step, event) in events.list.iter().enumerate() {
        let (object, more) = match event {
            Event::Host(host) if host.direction == Direction::Read => {
                out.insert(step, known(&objects, host.at.object));
                continue;
            }
            Event::Host(host) => (host.at.object, of(step, host)),
            Event::Launch(launch) => {
                let read = launch.given.iter();
                let read = read.map(|given| known(&objects, given.object));
                let all = read.fold(Depends::default(), Depends::or);
                for given in launch.given.iter().filter(|given| !given.is_constant()) {
                    objects.insert(given.object, all);
                }
                continue;
            }
            Event::Moved(moved) => {
                let from = moved.from.map(|from| known(&objects, from.object));
                out.insert(step, from.unwrap_or_default());
                (moved.to.object, from.unwrap_or_default())
            }
        };
        let old = objects.entry(object).or_default();
        *old = old.or(more);
    }
    out
}

impl Followed {
    /// Why the trace cannot be replayed, if a launch reads a copy of what depends on a tensor: what was computed before any of them is a constant.
    pub(super) fn refusal(
        &self,
        events: &Events,
        dependencies: &BTreeMap<usize, Depends>,
    ) -> Result<(), ProposeError> {
        let depends = |broken: &&Broken| dependencies.get(&broken.copy).copied();
        let of_inputs = |broken: &&Broken| depends(broken).is_some_and(|on| on.inputs);
        let of_weights = |broken: &&Broken| depends(broken).is_some_and(|on| on.weights);
        // For an input's there is no remedy but in the app.
        let inputs = self.broken.iter().find(of_inputs);
        let Some(broken) = inputs.or_else(|| self.broken.iter().find(of_weights)) else {
            return Ok(());
        };
        let text = |step: Option<usize>| match step.and_then(|step| events.list.get(step)) {
            Some(Event::Launch(launch)) if launch.id == u32::MAX => launch.kernel.clone(),
            Some(Event::Launch(launch)) => format!("launch {} ({})", launch.id, launch.kernel),
            _ => "a kernel".to_owned(),
        };
        Err(ProposeError::Copied {
            reader: text(Some(broken.reader)),
            argument: broken.argument.clone(),
            call: broken.call.clone(),
            writer: text(broken.writer),
            weights: inputs.is_none(),
        })
    }
}
