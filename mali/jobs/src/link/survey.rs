// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chains, and pages that can be copied.

use std::collections::{BTreeMap, BTreeSet};

use crate::walk::{Submission, submissions};
use gpureplay_format::{Action, PAGE_SIZE, Recording, RegionKind, SegmentKind};
use mali_drive::Verified;
use mali_facts::registers::JobConfigFlags;
use mali_facts::{ChainEnd, Job, Memory, Profile, follow};

use crate::link::chains::Count;
use crate::link::error::LinkError;
use crate::link::objects::{Object, Pointer, Reach, reach};

pub(crate) const PAGE: u64 = PAGE_SIZE as u64;

/// Bytes: longer uploads and fills are no descriptors.
const LONGEST_UPLOAD: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) slot: u8,
    /// Without the bit that tells chains apart.
    pub(crate) config: u16,
    pub(crate) timeout_us: u32,
    pub(crate) head: u64,
    pub(crate) rearmed: Vec<u64>,
    pub(crate) jobs: Vec<(Job, Reach)>,
    pub(crate) known: bool,
    pub(crate) contents: Vec<(u64, Vec<u8>)>,
}

impl Chain {
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Object> {
        self.jobs.iter().flat_map(|(_, reach)| &reach.objects)
    }
}

#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) chains: Vec<Chain>,
    pub(crate) copied: BTreeSet<u64>,
    /// The processor writes to copied pages between chains.
    pub(crate) rewritten: bool,
}

pub(crate) fn pages(start: u64, end: u64) -> impl Iterator<Item = u64> {
    (start - start % PAGE..end).step_by(PAGE as usize)
}

pub(crate) fn survey(
    verified: &Verified<'_>,
    profile: &'static Profile,
) -> Result<Survey, LinkError> {
    let recording = verified.recording();
    let (mut chains, mut count) = (Vec::new(), Count::default());
    submissions(verified, |submission| {
        count.add(follow(submission.memory, submission.head).length as usize)?;
        chains.push(chain(recording, profile, submission));
        Ok::<(), LinkError>(())
    })?;
    let copied = copied(recording, &chains);
    are_few(&chains, &copied)?;
    submissions(verified, |submission| {
        let chain: Option<&mut Chain> = chains.get_mut(submission.number as usize);
        if let Some(chain) = chain.filter(|chain| chain.known) {
            chain.contents = contents(chain, submission, &copied);
        }
        Ok::<(), LinkError>(())
    })?;
    let rewritten = rewritten(recording)
        .iter()
        .any(|page| copied.contains(page));
    Ok(Survey {
        chains,
        copied,
        rewritten,
    })
}

/// Pages of all copies: 64 MiB of GPU memory. A network has some hundred chains of a few pages.
const MOST_COPIES: usize = 1 << 14;

fn are_few(chains: &[Chain], copied: &BTreeSet<u64>) -> Result<(), LinkError> {
    let mut left = MOST_COPIES;
    for chain in chains {
        let all = chain
            .objects()
            .flat_map(|object| pages(object.address, object.end()));
        let own: BTreeSet<u64> = all.filter(|page| copied.contains(page)).collect();
        left = left
            .checked_sub(own.len())
            .ok_or(LinkError::TooManyCopies { most: MOST_COPIES })?;
    }
    Ok(())
}

fn contents(
    chain: &Chain,
    submission: &Submission<'_>,
    copied: &BTreeSet<u64>,
) -> Vec<(u64, Vec<u8>)> {
    let there = |object: &&Object| copied.contains(&(object.address - object.address % PAGE));
    let objects = chain.objects().filter(there);
    objects
        .map(|object| {
            let mut bytes = vec![0; object.length as usize];
            submission.memory.read(object.address, &mut bytes);
            (object.address, bytes)
        })
        .collect()
}

fn chain(
    recording: &Recording<'_>,
    profile: &'static Profile,
    submission: &Submission<'_>,
) -> Chain {
    let followed = follow(submission.memory, submission.head);
    let entry = recording.action_entries().get(submission.action as usize);
    let mut found = Chain {
        slot: submission.slot,
        config: entry.map_or(0, |entry| entry.b.get())
            & !(JobConfigFlags::CHAIN_FLAG.bits() as u16),
        timeout_us: entry.map_or(0, |entry| entry.c.get()),
        head: submission.head,
        rearmed: submission.rearmed.to_vec(),
        jobs: Vec::new(),
        known: followed.end == ChainEnd::Complete,
        contents: Vec::new(),
    };
    for job in followed.jobs(submission.memory) {
        match reach(submission.memory, profile, &job) {
            Some(reach) if found.known => found.jobs.push((job, reach)),
            _ => found.known = false,
        }
    }
    found
}

fn rewritten(recording: &Recording<'_>) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    let mut part = (SegmentKind::Setup.code(), false);
    for segment in recording.segments() {
        if segment.kind != part.0 {
            part = (segment.kind, false);
        }
        for action in recording.segment_actions(segment).flatten() {
            let (va, length) = match action {
                Action::Submit { .. } => {
                    part.1 = true;
                    continue;
                }
                Action::Upload { va, length, .. } | Action::Fill { va, length, .. } => {
                    (va, u64::from(length))
                }
                _ => continue,
            };
            if part.1 && length <= LONGEST_UPLOAD {
                out.extend(pages(va, va.saturating_add(length)));
            }
        }
    }
    out
}

/// Pages that hold only descriptors and uniforms, to which all pointers are known, and that hold a job's header or
/// are rewritten between chains.
fn copied(recording: &Recording<'_>, chains: &[Chain]) -> BTreeSet<u64> {
    let mut wanted = rewritten(recording);
    let headers = chains.iter().flat_map(|chain| &chain.jobs);
    wanted.extend(headers.map(|(job, _)| job.address - job.address % PAGE));
    let mut reached: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for object in chains.iter().flat_map(Chain::objects) {
        let all: Vec<u64> = pages(object.address, object.end()).collect();
        for page in &all {
            reached.entry(*page).or_default().extend(&all);
        }
    }
    wanted.retain(|page| reached.contains_key(page));
    // An object that begins in such a page moves as a whole.
    let mut rest: Vec<u64> = wanted.iter().copied().collect();
    while let Some(page) = rest.pop() {
        for other in reached.get(&page).into_iter().flatten() {
            if wanted.insert(*other) {
                rest.push(*other);
            }
        }
    }
    for page in fixed(recording, chains) {
        wanted.remove(&page);
    }
    wanted.retain(|page| in_own_region(recording, *page));
    without_tensors(recording, &mut wanted);
    without_strays(recording, chains, &mut wanted);
    wanted
}

/// Pages reached otherwise than by changeable pointers.
fn fixed(recording: &Recording<'_>, chains: &[Chain]) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    let all: BTreeSet<u64> = chains
        .iter()
        .flat_map(Chain::objects)
        .flat_map(|object| pages(object.address, object.end()))
        .collect();
    let mut begun: BTreeMap<u64, u64> = BTreeMap::new();
    for chain in chains {
        for (_, reach) in &chain.jobs {
            for (first, last) in &reach.outside {
                let end = match recording.region_of(*first, 1) {
                    Some(region) => region.end().saturating_sub(1).min(*last),
                    None => *first,
                };
                out.extend(all.range(first - first % PAGE..=end.max(*first)));
            }
            for word in &reach.words {
                if let Some(region) = recording.region_of(*word, 1) {
                    let first = begun.entry(region.end()).or_insert(*word);
                    *first = (*first).min(*word);
                }
            }
        }
    }
    for (end, first) in begun {
        out.extend(all.range(first - first % PAGE..end));
    }
    if chains.iter().any(|chain| !chain.known) {
        out.extend(&all);
    }
    out
}

fn in_own_region(recording: &Recording<'_>, page: u64) -> bool {
    let region = recording.region_of(page, PAGE);
    let kind = region.and_then(|region| RegionKind::from_code(region.kind.into()));
    matches!(kind, Some(RegionKind::Data | RegionKind::Descriptors))
}

fn without_tensors(recording: &Recording<'_>, wanted: &mut BTreeSet<u64>) {
    for piece in recording.piece_entries() {
        let axes = recording.axes(piece).unwrap_or_default();
        let span = axes.iter().fold(0u64, |span, axis| {
            let steps = u64::from(axis.extent.get().saturating_sub(1));
            span.saturating_add(steps * u64::from(axis.byte_stride.get()))
        });
        // An element has at most eight bytes.
        let (first, last) = (
            piece.va.get(),
            piece.va.get().saturating_add(span).saturating_add(7),
        );
        let under: Vec<u64> = wanted.range(first - first % PAGE..=last).copied().collect();
        for page in under {
            wanted.remove(&page);
        }
    }
}

#[derive(Default)]
struct Dependent<'a> {
    objects: Vec<&'a Object>,
    chains: Vec<usize>,
}

/// Removes pages until no memory that stays points to one that moves.
fn without_strays(recording: &Recording<'_>, chains: &[Chain], wanted: &mut BTreeSet<u64>) {
    let page_of = |at: u64| at - at % PAGE;
    let mut by_page: BTreeMap<u64, Dependent<'_>> = BTreeMap::new();
    let mut strays: Vec<&Object> = Vec::new();
    let mut heads: Vec<bool> = Vec::new();
    for (number, chain) in chains.iter().enumerate() {
        let mut headers: Vec<u64> = chain
            .jobs
            .iter()
            .map(|(job, _)| page_of(job.address))
            .collect();
        headers.dedup();
        let moves = headers.iter().all(|page| wanted.contains(page));
        heads.push(moves);
        for page in headers {
            by_page.entry(page).or_default().chains.push(number);
        }
        for object in chain.objects() {
            let all = || pages(object.address, object.end());
            let (pointer, at) = match object.pointer {
                Pointer::Chain | Pointer::Job(_) => (moves, None),
                Pointer::Word { at, .. } => (wanted.contains(&page_of(at)), Some(page_of(at))),
                Pointer::Fixed => (false, None),
            };
            let together = recording.region_of(object.address, object.length).is_some();
            if !pointer || !together || !all().all(|page| wanted.contains(&page)) {
                strays.push(object);
                continue;
            }
            for page in all().chain(at) {
                by_page.entry(page).or_default().objects.push(object);
            }
        }
    }
    while let Some(object) = strays.pop() {
        for page in pages(object.address, object.end()) {
            if !wanted.remove(&page) {
                continue;
            }
            let Some(dependent) = by_page.remove(&page) else {
                continue;
            };
            strays.extend(dependent.objects);
            for number in dependent.chains {
                let (Some(chain), Some(moves)) = (chains.get(number), heads.get_mut(number)) else {
                    continue;
                };
                if std::mem::take(moves) {
                    let pointed =
                        |object: &&Object| !matches!(object.pointer, Pointer::Word { .. });
                    strays.extend(chain.objects().filter(pointed));
                }
            }
        }
    }
}
