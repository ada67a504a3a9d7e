// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes as steps on owning memory objects.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use gpureplay_trace::note::{
    Content, Copied, Direction, Filled, Note, Object, ObjectKind, Place, Transfer, Value,
};

use super::launches::{Launches, launches, refused};
use crate::capture::{Buffer, Capture};

/// Sub-buffers of sub-buffers; OpenCL forbids them.
const MAX_DEPTH: usize = 4;
/// Arguments that take as much work as a step; most kernels have fewer.
const GIVEN_A_STEP: usize = 4;

/// A memory object with memory of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) size: u64,
    pub(super) image: bool,
    pub(super) mapped: Option<Buffer>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) direction: Direction,
    pub(super) at: Place,
    pub(super) size: u64,
    pub(super) hash: Option<u64>,
    /// Submissions before it.
    pub(super) jobs: usize,
    /// A read that found what the host had written there.
    pub(super) kept: bool,
}

impl Host {
    pub(super) fn overlaps(&self, other: &Host) -> bool {
        let end = |host: &Host| host.at.offset.saturating_add(host.size);
        self.at.object == other.at.object
            && self.at.offset < end(other)
            && other.at.offset < end(self)
    }

    /// An image's bytes are unknown.
    pub(super) fn touches(&self, span: &Span) -> bool {
        let end = self.at.offset.saturating_add(self.size);
        self.at.object == span.object
            && (self.size == 0 || self.at.offset < span.end && span.start < end)
    }

    pub(super) fn is_within(&self, span: &Span) -> bool {
        let end = self.at.offset.saturating_add(self.size);
        self.at.object == span.object
            && self.size > 0
            && span.start <= self.at.offset
            && end <= span.end
    }
}

#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) object: u32,
    /// In the owning object: all of it, or a sub-buffer.
    pub(super) bytes: Range<u64>,
    pub(super) index: usize,
    /// Empty if unknown.
    pub(super) name: String,
    pub(super) type_name: String,
}

impl Given {
    pub(super) fn has(&self, host: &Host) -> bool {
        let overlaps = self.bytes.start < host.at.offset.saturating_add(host.size)
            && host.at.offset < self.bytes.end;
        self.object == host.at.object && (overlaps || host.size == 0)
    }

    pub(super) fn is_constant(&self) -> bool {
        self.type_name.starts_with("const ")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Launched {
    pub(super) id: u32,
    pub(super) kernel: String,
    pub(super) global: [u64; 3],
    pub(super) jobs: usize,
    pub(super) given: Vec<Given>,
    /// Index, name, bytes.
    pub(super) scalars: Vec<(usize, String, Vec<u8>)>,
}

impl Launched {
    pub(super) fn other_number(&self, other: &Self) -> Option<String> {
        let mut both = self.scalars.iter().zip(&other.scalars);
        let ((index, name, _), _) = both.find(|(one, other)| one != other)?;
        Some(match name.as_str() {
            "" => index.to_string(),
            name => name.to_owned(),
        })
    }

    pub(super) fn having<'a>(&'a self, host: &Host) -> impl Iterator<Item = &'a Given> {
        self.given.iter().filter(move |given| given.has(host))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Span {
    pub(super) object: u32,
    pub(super) start: u64,
    /// `u64::MAX` if unknown: to the end of the object, or part of an image.
    pub(super) end: u64,
}

impl Span {
    fn new(at: Place, size: u64) -> Self {
        let end = match size {
            0 => u64::MAX,
            size => at.offset.saturating_add(size),
        };
        Self {
            object: at.object,
            start: at.offset,
            end,
        }
    }

    pub(super) fn size(&self) -> Option<u64> {
        (self.end < u64::MAX).then(|| self.end.saturating_sub(self.start))
    }
}

/// A copy or fill by the runtime.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    pub(super) call: String,
    /// `None` for a fill.
    pub(super) from: Option<Span>,
    pub(super) to: Span,
    pub(super) dense: bool,
    /// Submissions before it, if the CPU does it.
    pub(super) jobs: usize,
    /// If the GPU does it: the runtime's submissions between the launches around it.
    pub(super) own: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Host(Host),
    Launch(Launched),
    Moved(Moved),
}

impl Event {
    pub(super) fn jobs(&self) -> usize {
        match self {
            Event::Host(host) => host.jobs,
            Event::Launch(launch) => launch.jobs,
            Event::Moved(moved) => moved.jobs,
        }
    }

    /// Work in steps: given objects are looked at one by one.
    pub(super) fn work(&self) -> usize {
        match self {
            Event::Host(_) | Event::Moved(_) => 1,
            Event::Launch(launch) => 1 + launch.given.len() / GIVEN_A_STEP,
        }
    }

    pub(super) fn is_like(&self, other: &Event) -> bool {
        match (self, other) {
            (Event::Host(a), Event::Host(b)) => {
                (a.direction, a.at, a.size) == (b.direction, b.at, b.size)
            }
            (Event::Launch(a), Event::Launch(b)) => {
                let objects =
                    |launch: &Launched| launch.given.iter().map(|g| g.object).collect::<Vec<_>>();
                (&a.kernel, a.global) == (&b.kernel, b.global) && objects(a) == objects(b)
            }
            (Event::Moved(a), Event::Moved(b)) => {
                (&a.call, a.from, a.to, a.dense) == (&b.call, b.from, b.to, b.dense)
            }
            _ => false,
        }
    }
}

/// Common to steps that do the same to other objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape<'a> {
    /// Direction; start in the object and bytes, if sizes count.
    Host(Direction, Option<(u64, u64)>),
    /// Kernel, indices of object arguments; work-items, if sizes count.
    Launch(&'a str, Vec<usize>, Option<[u64; 3]>),
    /// Function; start and end of each side, if sizes count.
    Moved(&'a str, Option<[Option<(u64, u64)>; 2]>),
}

impl Event {
    pub(super) fn shape(&self, sizes: bool) -> Shape<'_> {
        match self {
            Event::Host(host) => {
                let place = sizes.then_some((host.at.offset, host.size));
                Shape::Host(host.direction, place)
            }
            Event::Launch(launch) => {
                let places = launch.given.iter().map(|given| given.index).collect();
                Shape::Launch(&launch.kernel, places, sizes.then_some(launch.global))
            }
            Event::Moved(moved) => {
                let place = |span: Span| (span.start, span.end);
                let places = [moved.from.map(place), Some(place(moved.to))];
                Shape::Moved(&moved.call, sizes.then_some(places))
            }
        }
    }

    pub(super) fn is_like_but_for_objects(&self, other: &Event) -> bool {
        self.shape(true) == other.shape(true)
    }

    pub(super) fn objects(&self) -> Vec<u32> {
        match self {
            Event::Host(host) => vec![host.at.object],
            Event::Launch(launch) => launch.given.iter().map(|given| given.object).collect(),
            Event::Moved(moved) => {
                let from = moved.from.map(|from| from.object);
                from.into_iter().chain([moved.to.object]).collect()
            }
        }
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Launch(launch) => {
                let [x, y, z] = launch.global;
                write!(
                    f,
                    "launch {} ({}, {x} x {y} x {z})",
                    launch.id, launch.kernel
                )
            }
            Event::Host(host) => {
                let what = match host.direction {
                    Direction::Write => "write",
                    Direction::Read => "read",
                    Direction::Unchanged => "map",
                };
                write!(
                    f,
                    "a {what} of {} bytes of object {}",
                    host.size, host.at.object
                )
            }
            Event::Moved(moved) => write!(f, "{} to object {}", moved.call, moved.to.object),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    pub(super) roots: BTreeMap<u32, Root>,
    pub(super) list: Vec<Event>,
    pub(super) note_indices: Vec<usize>,
    /// Functions that notes do not describe.
    pub(super) unseen: Vec<String>,
    /// Submissions of no launch, ascending.
    pub(super) unnamed: Vec<usize>,
}

impl Events {
    pub(super) fn of(capture: &Capture) -> Self {
        let mut out = Events::default();
        let mut parts: BTreeMap<u32, Place> = BTreeMap::new();
        let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
        let (refused, later) = (refused(capture), later_hashes(capture));
        let mut unseen: BTreeSet<&str> = BTreeSet::new();
        let known = launches(capture);
        let queued = Queued::of(capture, &known);
        for (index, noted) in capture.opencl.iter().enumerate() {
            let before = out.list.len();
            match &noted.note {
                Note::Object(Object { id, kind, size }) => {
                    sizes.insert(*id, *size);
                    match kind {
                        ObjectKind::Part(of) => {
                            parts.insert(*id, *of);
                        }
                        kind => {
                            let root = Root {
                                size: *size,
                                image: *kind == ObjectKind::Image,
                                mapped: noted.mapped,
                            };
                            out.roots.insert(*id, root);
                        }
                    }
                }
                Note::Transfer(transfer) => {
                    if let Some(at) = owner(&parts, transfer.at) {
                        out.list.push(Event::Host(Host {
                            direction: transfer.direction,
                            at,
                            size: transfer.size,
                            hash: match transfer.content {
                                Content::Hash(hash) => Some(hash),
                                Content::Later(id) => later.get(&id).copied(),
                                Content::Unseen => None,
                            },
                            jobs: queued.jobs_before(index, transfer, noted.jobs),
                            kept: false,
                        }));
                    }
                }
                Note::Launch(launch) if !refused.contains(&launch.id) => {
                    let given = launch.arguments.iter().enumerate();
                    let given = given.filter_map(|(index, argument)| {
                        let Value::Object(object) = argument.value else {
                            return None;
                        };
                        let start = owner(&parts, Place { object, offset: 0 })?;
                        // An unknown size may be all that follows.
                        let size = sizes.get(&object).copied().filter(|size| *size > 0);
                        let end = start.offset.saturating_add(size.unwrap_or(u64::MAX));
                        Some(Given {
                            object: start.object,
                            bytes: start.offset..end,
                            index,
                            name: argument.name.clone(),
                            type_name: argument.type_name.clone(),
                        })
                    });
                    out.list.push(Event::Launch(Launched {
                        id: launch.id,
                        kernel: launch.kernel.clone(),
                        global: launch.global,
                        jobs: queued.start(index, launch.queue).unwrap_or(noted.jobs),
                        given: given.collect(),
                        scalars: launch
                            .arguments
                            .iter()
                            .enumerate()
                            .filter_map(|(index, argument)| match &argument.value {
                                Value::Scalar(bytes) => {
                                    Some((index, argument.name.clone(), bytes.clone()))
                                }
                                _ => None,
                            })
                            .collect(),
                    }));
                }
                Note::Copy(copied) => {
                    let moved = owner(&parts, copied.from).zip(owner(&parts, copied.to));
                    out.list.extend(moved.map(|(from, to)| {
                        let spans = (Span::new(from, copied.size), Span::new(to, copied.to_size));
                        let Copied { dense, queue, .. } = *copied;
                        let (jobs, own) = queued.of_runtime(index, queue, noted.jobs, capture);
                        Event::Moved(Moved {
                            call: copied.call.clone(),
                            from: Some(spans.0),
                            to: spans.1,
                            dense: dense && copied.size == copied.to_size && copied.size > 0,
                            jobs,
                            own,
                        })
                    }));
                }
                Note::Fill(Filled {
                    at,
                    size,
                    queue,
                    call,
                }) => {
                    out.list.extend(owner(&parts, *at).map(|at| {
                        let (jobs, own) = queued.of_runtime(index, *queue, noted.jobs, capture);
                        Event::Moved(Moved {
                            call: call.clone(),
                            from: None,
                            to: Span::new(at, *size),
                            dense: true,
                            jobs,
                            own,
                        })
                    }));
                }
                Note::Unseen { call } if unseen.insert(call) => {
                    out.unseen.push(call.clone());
                }
                _ => {}
            }
            if out.list.len() > before {
                out.note_indices.push(index);
            }
        }
        let chains = known.chains.iter().enumerate();
        let unnamed = chains.filter(|(_, dispatch)| dispatch.is_none());
        out.unnamed = unnamed.map(|(chain, _)| chain).collect();
        out.decide_unchanged();
        out
    }

    /// An unchanged read-write mapping is a read if a kernel may have written it since the host did, else a write
    /// of the same values. No kernel wrote what still holds the host's data, whatever its arguments' types say.
    fn decide_unchanged(&mut self) {
        let mut computed: BTreeSet<u32> = BTreeSet::new();
        let mut written: BTreeMap<u32, BTreeMap<(u64, u64), Option<u64>>> = BTreeMap::new();
        for event in &mut self.list {
            let host = match event {
                Event::Launch(launch) => {
                    let given = launch.given.iter().filter(|given| !given.is_constant());
                    computed.extend(given.map(|given| given.object));
                    continue;
                }
                Event::Moved(moved) => {
                    let object = moved.to.object;
                    if moved
                        .from
                        .is_some_and(|from| computed.contains(&from.object))
                    {
                        computed.insert(object);
                    }
                    written.remove(&object);
                    continue;
                }
                Event::Host(host) => host,
            };
            let range = (host.at.offset, host.size);
            let known = written.entry(host.at.object).or_default();
            let kept = host.hash.is_some() && known.get(&range) == Some(&host.hash);
            if host.direction == Direction::Unchanged {
                host.direction = match computed.contains(&host.at.object) && !kept {
                    true => Direction::Read,
                    false => Direction::Write,
                };
            }
            match host.direction {
                Direction::Read => host.kept = kept,
                Direction::Write | Direction::Unchanged => {
                    computed.remove(&host.at.object);
                    known.insert(range, host.hash);
                }
            }
        }
    }
}

fn later_hashes(capture: &Capture) -> BTreeMap<u32, u64> {
    let content = capture.opencl.iter().filter_map(|noted| match noted.note {
        Note::Content { id, hash } => Some((id, hash)),
        _ => None,
    });
    content.collect()
}

struct Queued {
    /// By queue and note; chains if known.
    launches: BTreeMap<u32, BTreeMap<usize, Option<Range<usize>>>>,
    /// Notes at which a queue was idle, and submissions before them.
    idle: BTreeMap<u32, Vec<(usize, usize)>>,
}

impl Queued {
    fn of(capture: &Capture, known: &Launches) -> Self {
        let places = known.places();
        let refused = refused(capture);
        let mut launches: BTreeMap<u32, BTreeMap<usize, Option<Range<usize>>>> = BTreeMap::new();
        let mut idle: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
        for (index, noted) in capture.opencl.iter().enumerate() {
            match &noted.note {
                Note::Launch(launch) if !refused.contains(&launch.id) => {
                    let queue = launches.entry(launch.queue).or_default();
                    queue.insert(index, places.get(&launch.id).cloned());
                }
                Note::Idle { queue } => {
                    idle.entry(*queue).or_default().push((index, noted.jobs));
                }
                _ => {}
            }
        }
        Queued { launches, idle }
    }

    fn start(&self, index: usize, queue: u32) -> Option<usize> {
        let chains = self.launches.get(&queue)?.get(&index)?.as_ref()?;
        Some(chains.start)
    }

    /// Submissions before a transfer: it comes after earlier launches of its queue, before later ones.
    fn jobs_before(&self, index: usize, transfer: &Transfer, noted: usize) -> usize {
        let launches = transfer.queue.and_then(|queue| self.launches.get(&queue));
        let Some(launches) = launches.filter(|_| !transfer.complete) else {
            return noted;
        };
        let earlier = launches.range(..index).next_back();
        let later = launches.range(index..).next();
        let after = earlier.and_then(|(_, chains)| Some(chains.as_ref()?.end));
        let before = later.and_then(|(_, chains)| Some(chains.as_ref()?.start));
        after.or(before).map_or(noted, |jobs| jobs.max(noted))
    }

    /// Submissions before it, and those that may be its own.
    fn of_runtime(
        &self,
        index: usize,
        queue: Option<u32>,
        noted: usize,
        capture: &Capture,
    ) -> (usize, Range<usize>) {
        let launches = queue.and_then(|queue| self.launches.get(&queue));
        let chains = |(_, chains): (_, &Option<Range<usize>>)| chains.clone();
        let earlier = launches.and_then(|queue| chains(queue.range(..index).next_back()?));
        let later = launches.and_then(|queue| chains(queue.range(index..).next()?));
        let start = earlier.map_or(noted, |chains| chains.end.max(noted));
        let idle = queue.and_then(|queue| {
            let idle = self.idle.get(&queue)?;
            let next = idle.partition_point(|(at, _)| *at < index);
            idle.get(next).map(|(_, jobs)| *jobs)
        });
        let end = later.map_or(capture.jobs.len(), |chains| chains.start);
        (start, start..end.min(idle.unwrap_or(end)).max(start))
    }
}

/// The byte in the owning object; `None` for invalid parts.
fn owner(parts: &BTreeMap<u32, Place>, mut at: Place) -> Option<Place> {
    for _ in 0..MAX_DEPTH {
        let Some(of) = parts.get(&at.object) else {
            return Some(at);
        };
        at = Place {
            object: of.object,
            offset: at.offset.checked_add(of.offset)?,
        };
    }
    None
}
