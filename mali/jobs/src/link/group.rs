// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives chains their own descriptors and joins them.

use std::collections::BTreeSet;

use gpureplay_core::Limits;
use gpureplay_format::layout::{Region, Segment, TENSOR_EXTERNAL, TensorEntry};
use gpureplay_format::lz4::History;
use gpureplay_format::{
    Access, Action, Builder, ElementType, Piece, Recording, RegionKind, SegmentKind, Tensor,
    TensorId, TensorKind,
};
use mali_drive::Verified;
use mali_facts::{JobHeader, LONGEST_CHAIN, Profile};

use crate::link::chains::Indices;
use crate::link::copies::Copies;
use crate::link::error::LinkError;
use crate::link::linked::{Linked, Place};
use crate::link::proof;
use crate::link::survey::{Chain, PAGE, Survey, pages, survey};

/// Default jobs of a chain. Only between chains does the GPU go to others, or a run end early.
pub const MOST_JOBS: u32 = 64;

/// Joins successive chains, up to `most_jobs` (at least 1) jobs in each.
///
/// Proves that only the place of descriptors differs.
///
/// # Errors
/// Chains break a rule, or the recording grows too large.
pub fn link(bytes: &[u8], verified: &Verified<'_>, most_jobs: u32) -> Result<Linked, LinkError> {
    let recording = verified.recording();
    let profile = crate::walk::profile(verified)?;
    crate::walk::check_only(verified)?;
    let survey = survey(verified, profile)?;
    let start = recording.regions().last().map_or(0, Region::end);
    let copies = Copies::new(&survey, start.saturating_add(PAGE));
    if copies.pages == 0 || !fits(&copies, profile) {
        return Ok(unchanged(bytes, &survey));
    }
    let mut writer = Writer {
        recording,
        builder: Builder::new(recording.gpu_id()),
        survey: &survey,
        copies,
        most_jobs: most_jobs.clamp(1, LONGEST_CHAIN),
        waiting: Vec::new(),
        number: 0,
        submitted: 0,
        places: Vec::new(),
    };
    let groups = writer.groups();
    if !survey.rewritten && groups.iter().all(|group| group.len() < 2) {
        return Ok(unchanged(bytes, &survey));
    }
    writer.tables();
    writer.headers(&groups);
    writer.program(&groups);
    let linked = Linked {
        bytes: writer.builder.finish()?,
        places: writer.places,
        chains: writer.submitted,
    };
    proof::same_jobs(verified, &survey, &linked, profile)?;
    Ok(linked)
}

fn fits(copies: &Copies, profile: &Profile) -> bool {
    let bits = profile.virtual_bits().min(48);
    let end = copies
        .pages
        .checked_mul(PAGE)
        .and_then(|bytes| copies.start.checked_add(bytes));
    u32::try_from(copies.pages).is_ok() && end.is_some_and(|end| end <= 1 << bits)
}

fn unchanged(bytes: &[u8], survey: &Survey) -> Linked {
    let places = (0..).zip(&survey.chains).map(|(submission, chain)| Place {
        submission,
        first: 0,
        jobs: chain.jobs.len() as u32,
    });
    Linked {
        bytes: bytes.to_vec(),
        places: places.collect(),
        chains: survey.chains.len() as u32,
    }
}

struct Writer<'r, 'v> {
    recording: &'r Recording<'v>,
    builder: Builder,
    survey: &'r Survey,
    copies: Copies,
    most_jobs: u32,
    waiting: Vec<usize>,
    number: usize,
    submitted: u32,
    places: Vec<Place>,
}

enum Step<'a> {
    Action(Action<'a>),
    Bytes(u64, Vec<u8>),
    Fill(u64, u32, u8),
    Chain,
}

impl Writer<'_, '_> {
    fn tables(&mut self) {
        let recording = self.recording;
        let builder = &mut self.builder;
        builder.platform(recording.header().platform());
        for check in recording.identity() {
            builder.identity(check.register.get(), check.mask.get(), check.value.get());
        }
        for region in recording.regions() {
            if let Some(kind) = RegionKind::from_code(region.kind.into()) {
                let access = Access(region.access);
                builder.region(region.va.get(), region.pages.get(), access, kind);
            }
        }
        let pages = self.copies.pages as u32;
        let kind = RegionKind::Descriptors;
        builder.region(self.copies.start, pages, Access::READ_WRITE, kind);
        for entry in recording.tensors() {
            builder.tensor(tensor(recording, entry));
        }
    }

    fn groups(&self) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = Vec::new();
        let mut number = 0;
        for segment in self.recording.segments() {
            let mut group: Vec<usize> = Vec::new();
            for action in self.recording.segment_actions(segment).flatten() {
                match action {
                    Action::Submit { .. } => {
                        if !self.joins(&group, number) {
                            out.push(std::mem::take(&mut group));
                        }
                        group.push(number);
                        number += 1;
                    }
                    Action::Rearm { .. } | Action::Seek { .. } => {}
                    Action::Upload { va, length, .. } | Action::Fill { va, length, .. }
                        if self.is_copied(va, length.into()) => {}
                    _ => out.push(std::mem::take(&mut group)),
                }
            }
            out.push(group);
        }
        out.retain(|group| !group.is_empty());
        out
    }

    fn joins(&self, group: &[usize], number: usize) -> bool {
        let chains = &self.survey.chains;
        let (Some(first), Some(next)) = (
            group.first().and_then(|at| chains.get(*at)),
            chains.get(number),
        ) else {
            return false;
        };
        let jobs = |of: &Chain| of.jobs.len() as u64;
        let all: u64 = group
            .iter()
            .filter_map(|at| chains.get(*at))
            .map(jobs)
            .sum();
        let moves = |number: usize| {
            chains
                .get(number)
                .is_some_and(|it| self.copies.moves(number, it))
        };
        moves(number)
            && group.iter().all(|number| moves(*number))
            && (first.slot, first.config) == (next.slot, next.config)
            && all + jobs(next) <= u64::from(self.most_jobs)
    }

    fn is_copied(&self, va: u64, length: u64) -> bool {
        pages(va, va.saturating_add(length)).all(|page| self.survey.copied.contains(&page))
    }

    fn headers(&mut self, groups: &[Vec<usize>]) {
        for group in groups.iter().filter(|group| group.len() > 1) {
            let mut all: Vec<(u64, JobHeader)> = Vec::new();
            for (position, number) in group.iter().enumerate() {
                let Some(chain) = self.survey.chains.get(*number) else {
                    continue;
                };
                let before = all.len() as u64;
                let indices = Indices::of(chain.jobs.iter().map(|(job, _)| job));
                for (at, (job, _)) in (1..).zip(&chain.jobs) {
                    let of = |index: u64| indices.place(index).map_or(0, |place| before + place);
                    let first = of(job.header.dependency_1());
                    let second = of(job.header.dependency_2());
                    let mut header = job
                        .header
                        .with("Index", before + at)
                        .with("Dependency 1", first)
                        .with("Dependency 2", second);
                    if position > 0 {
                        header = header.with("Barrier", 1);
                        header = match (first, second) {
                            (0, _) => header.with("Dependency 1", before),
                            (_, 0) => header.with("Dependency 2", before),
                            _ => header,
                        };
                    }
                    all.push((self.copies.place(*number, job.address), header));
                }
            }
            let next: Vec<u64> = all.iter().skip(1).map(|(at, _)| *at).chain([0]).collect();
            for ((at, header), next) in all.into_iter().zip(next) {
                let bytes = header.with("Next", next).to_bytes();
                if let Some(words) = bytes.get(mali_facts::job::WRITTEN_BACK as usize..) {
                    self.copies.write(at + mali_facts::job::WRITTEN_BACK, words);
                }
            }
        }
    }

    fn program(&mut self, groups: &[Vec<usize>]) {
        let last: BTreeSet<usize> = groups
            .iter()
            .filter_map(|group| group.last())
            .copied()
            .collect();
        let mut copied = false;
        let recording = self.recording;
        let setup = SegmentKind::Setup.code();
        if recording
            .segments()
            .first()
            .is_none_or(|first| first.kind != setup)
        {
            self.builder.segment("setup", SegmentKind::Setup);
            self.upload_copies();
            copied = true;
        }
        for segment in recording.segments() {
            let Some(kind) = SegmentKind::from_code(segment.kind.into()) else {
                continue;
            };
            self.builder
                .segment(recording.name(segment.name.get()), kind);
            for step in self.steps(segment) {
                if !copied && !matches!(step, Step::Action(Action::Write { .. })) {
                    self.upload_copies();
                    copied = true;
                }
                match step {
                    Step::Chain => {
                        self.waiting.push(self.number);
                        if last.contains(&self.number) {
                            self.submit();
                        }
                        self.number += 1;
                    }
                    Step::Bytes(va, bytes) => self.builder.upload(va, &bytes),
                    Step::Fill(va, length, byte) => self.builder.fill(va, length, byte),
                    Step::Action(Action::Write { register, value }) => {
                        self.builder.write(register, value);
                    }
                    Step::Action(Action::BindInput { tensor }) => {
                        self.builder.bind_input(TensorId(tensor));
                    }
                    Step::Action(Action::BindOutput { tensor }) => {
                        self.builder.bind_output(TensorId(tensor));
                    }
                    Step::Action(_) => {}
                }
            }
            if !copied && kind == SegmentKind::Setup {
                self.upload_copies();
                copied = true;
            }
        }
    }

    fn upload_copies(&mut self) {
        for (va, bytes) in self.copies.uploads() {
            self.builder.upload(va, &bytes);
        }
    }

    fn steps<'a>(&self, segment: &Segment) -> Vec<Step<'a>>
    where
        Self: 'a,
    {
        let mut history = Box::new(History::new());
        let mut out = Vec::new();
        for action in self.recording.segment_actions(segment).flatten() {
            match action {
                Action::Upload {
                    va,
                    length,
                    payload,
                } => {
                    let bytes = payload.bytes(&mut history, length as usize);
                    let bytes = bytes.unwrap_or_default();
                    for (start, end) in self.outside_copied(va, bytes.len() as u64) {
                        let part = bytes.get((start - va) as usize..(end - va) as usize);
                        out.push(Step::Bytes(start, part.unwrap_or_default().to_vec()));
                    }
                }
                Action::Fill { va, length, byte } => {
                    for (start, end) in self.outside_copied(va, length.into()) {
                        out.push(Step::Fill(start, (end - start) as u32, byte));
                    }
                }
                Action::Submit { .. } => out.push(Step::Chain),
                Action::Rearm { .. } | Action::Seek { .. } | Action::Launch { .. } => {}
                Action::Write { register, value } => {
                    out.push(Step::Action(Action::Write { register, value }));
                }
                Action::BindInput { tensor } => {
                    out.push(Step::Action(Action::BindInput { tensor }));
                }
                Action::BindOutput { tensor } => {
                    out.push(Step::Action(Action::BindOutput { tensor }));
                }
            }
        }
        out
    }

    fn outside_copied(&self, va: u64, length: u64) -> Vec<(u64, u64)> {
        let end = va.saturating_add(length);
        let mut out = Vec::new();
        let mut at = va;
        for page in self.survey.copied.range(va - va % PAGE..end) {
            if at < *page {
                out.push((at, *page));
            }
            at = page.saturating_add(PAGE);
        }
        if at < end {
            out.push((at, end));
        }
        out
    }

    fn submit(&mut self) {
        let group = std::mem::take(&mut self.waiting);
        let chains = &self.survey.chains;
        let Some((number, first)) = group.first().and_then(|at| Some((*at, chains.get(*at)?)))
        else {
            return;
        };
        let (mut jobs, mut timeout_us) = (0, 0u32);
        for number in &group {
            let Some(chain) = chains.get(*number) else {
                continue;
            };
            if self.copies.moves(*number, chain) {
                for (job, _) in &chain.jobs {
                    self.builder.rearm(self.copies.place(*number, job.address));
                }
            } else {
                chain.rearmed.iter().for_each(|at| self.builder.rearm(*at));
            }
            self.places.push(Place {
                submission: self.submitted,
                first: jobs,
                jobs: chain.jobs.len() as u32,
            });
            jobs += chain.jobs.len() as u32;
            timeout_us = timeout_us.saturating_add(chain.timeout_us);
        }
        let timeout_us = timeout_us.min(Limits::DEFAULT.wait_us);
        let head = self.copies.place(number, first.head);
        self.builder
            .submit_with(first.slot, first.config, head, timeout_us);
        self.submitted += 1;
    }
}

fn tensor(recording: &Recording<'_>, entry: &TensorEntry) -> Tensor {
    let pieces = recording.pieces(entry).unwrap_or_default().iter();
    let pieces = pieces.map(|piece| Piece::of(recording, piece));
    Tensor {
        name: recording.name(entry.name.get()).to_owned(),
        kind: TensorKind::from_code(entry.kind.into()).unwrap_or(TensorKind::Intermediate),
        element: ElementType::from_code(entry.element.into()).unwrap_or(ElementType::U8),
        shape: recording
            .shape(entry)
            .iter()
            .map(|extent| extent.get())
            .collect(),
        pieces: pieces.collect(),
        external: entry.flags & TENSOR_EXTERNAL != 0,
    }
}
