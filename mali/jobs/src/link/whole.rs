// SPDX-License-Identifier: MIT OR Apache-2.0
//! All layers as one part.

use gpureplay_core::Limits;
use gpureplay_format::encode::Draft;
use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{EncodeError, Opcode, Recording, SegmentKind, TensorKind};
use mali_drive::Verified;
use mali_facts::{Job, JobHeader};
use zerocopy::little_endian::U32;

use crate::link::chains::{Indices, chains};
use crate::link::error::LinkError;
use crate::link::linked::{Linked, Place, sound, upload_headers, written};
use crate::link::split::lengths;

/// Joins all layers into one run segment, with chains of up to `most_jobs` jobs. Values between layers cannot be
/// read; tensors keep their numbers. `None`: one layer, or the processor works between layers.
///
/// # Errors
/// Chains that break a rule.
pub fn whole(verified: &Verified<'_>, most_jobs: u32) -> Result<Option<Vec<u8>>, LinkError> {
    let recording = verified.recording();
    if !can_be_joined(recording) {
        return Ok(None);
    }
    let chains = chains(verified)?;
    let bytes = rewrite(recording, &chains, most_jobs)?;
    sound(&written(&bytes)?)?;
    Ok(Some(bytes))
}

/// Joins as [`whole`] and gives jobs' new places.
///
/// # Errors
/// As for [`whole`].
pub fn join_layers(linked: &Linked, most_jobs: u32) -> Result<Option<Linked>, LinkError> {
    let recording = written(&linked.bytes)?;
    let Some(bytes) = whole(&sound(&recording)?, most_jobs)? else {
        return Ok(None);
    };
    let mut starts = Vec::new();
    for (submission, jobs) in (0..).zip(lengths(&sound(&written(&bytes)?)?)?) {
        starts.extend((0..jobs).map(|first| (submission, first)));
    }
    let chains = starts.last().map_or(0, |(submission, _)| submission + 1);
    let mut next = starts.into_iter();
    let places = linked.places.iter().map(|place| {
        let jobs = place.jobs;
        let mut own = next.by_ref().take(jobs as usize);
        let (submission, first) = own.next().unwrap_or_default();
        own.for_each(drop);
        Place {
            submission,
            first,
            jobs,
        }
    });
    let places = places.collect();
    Ok(Some(Linked {
        bytes,
        places,
        chains,
    }))
}

/// Later layers may hold only chains and values between layers.
fn can_be_joined(recording: &Recording<'_>) -> bool {
    let runs = recording.segments().iter();
    let mut later = runs
        .filter(|segment| segment.kind == SegmentKind::Run.code())
        .skip(1)
        .peekable();
    let only = |entry: &ActionEntry| {
        !matches!(
            Opcode::from_code(entry.op.into()),
            Some(Opcode::Upload | Opcode::Fill) | None
        )
    };
    later.peek().is_some()
        && later.all(|segment| recording.segment_entries(segment).iter().all(only))
}

fn is_between(recording: &Recording<'_>, entry: &ActionEntry) -> bool {
    let bind = matches!(
        Opcode::from_code(entry.op.into()),
        Some(Opcode::BindInput | Opcode::BindOutput)
    );
    let tensor = recording.tensors().get(entry.c.get() as usize);
    bind && tensor.is_some_and(|tensor| tensor.kind == TensorKind::Intermediate.code())
}

#[derive(Default)]
struct Group {
    submit: Option<ActionEntry>,
    timeout_us: u32,
    chains: Vec<Vec<Job>>,
}

impl Group {
    fn jobs(&self) -> usize {
        self.chains.iter().map(Vec::len).sum()
    }

    fn takes(&self, entry: &ActionEntry, jobs: usize, most: u32) -> bool {
        let same = self
            .submit
            .is_some_and(|first| (first.a, first.b) == (entry.a, entry.b));
        same && self.jobs() + jobs <= most as usize
    }

    fn flush(&mut self, draft: &mut Draft<'_>, cursor: u64) {
        let group = std::mem::take(self);
        let Some(submit) = group.submit else { return };
        upload_headers(draft, &group.headers(), cursor);
        for job in group.chains.iter().flatten() {
            draft.action(Opcode::Rearm, job.address);
        }
        draft.push(ActionEntry {
            c: U32::new(group.timeout_us.min(Limits::DEFAULT.wait_us)),
            ..submit
        });
    }

    fn headers(&self) -> Vec<(u64, JobHeader)> {
        let all: Vec<&Job> = self.chains.iter().flatten().collect();
        let mut out = Vec::new();
        let mut before = 0;
        for (number, chain) in self.chains.iter().enumerate() {
            let indices = Indices::of(chain.iter());
            for (at, job) in chain.iter().enumerate() {
                let index = before + at as u64 + 1;
                let of = |index: u64| indices.place(index).map_or(0, |place| before + place);
                let (first, second) =
                    (of(job.header.dependency_1()), of(job.header.dependency_2()));
                let next = all.get(index as usize).map_or(0, |next| next.address);
                let mut header = job.header.with("Index", index).with("Next", next);
                header = match (first, second) {
                    (0, second) if number > 0 => header
                        .with("Dependency 1", before)
                        .with("Dependency 2", second),
                    (first, 0) if number > 0 => header
                        .with("Dependency 1", first)
                        .with("Dependency 2", before),
                    (first, second) => header
                        .with("Dependency 1", first)
                        .with("Dependency 2", second),
                };
                if number > 0 {
                    header = header.with("Barrier", 1);
                }
                if header != job.header {
                    out.push((job.address, header));
                }
            }
            before += chain.len() as u64;
        }
        out
    }
}

fn rewrite(
    recording: &Recording<'_>,
    chains: &[Vec<Job>],
    most_jobs: u32,
) -> Result<Vec<u8>, EncodeError> {
    let mut draft = Draft::new(recording);
    let mut chains = chains.iter();
    let mut joined = false;
    let run = SegmentKind::Run.code();
    let mut group = Group::default();
    for segment in recording.segments() {
        if segment.kind != run || !joined {
            group.flush(&mut draft, 0);
            draft.segment(segment);
            if segment.kind == run {
                draft.rename("run");
            }
        }
        joined = segment.kind == run;
        let mut ready = Vec::new();
        for step in recording.steps(segment).flatten() {
            let entry = step.entry;
            match step.opcode {
                Opcode::Rearm => ready.push(*entry),
                Opcode::Submit => {
                    let jobs = chains.next().cloned().unwrap_or_default();
                    let ready = std::mem::take(&mut ready);
                    if segment.kind != run {
                        ready.into_iter().for_each(|entry| draft.push(entry));
                        draft.push(*entry);
                        continue;
                    }
                    if !group.takes(entry, jobs.len(), most_jobs) {
                        group.flush(&mut draft, step.after);
                        group.submit = Some(*entry);
                    }
                    group.timeout_us = group.timeout_us.saturating_add(entry.c.get());
                    group.chains.push(jobs);
                }
                _ if segment.kind == run && is_between(recording, entry) => {}
                Opcode::Seek => draft.push(*entry),
                _ => {
                    group.flush(&mut draft, step.before);
                    draft.push(*entry);
                }
            }
        }
    }
    group.flush(&mut draft, 0);
    draft.encode()
}
