// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a replay must put into GPU memory, and when.
//!
//! A trace shows what changed around each job, not what it reads. So every run restores all that the repeated part
//! changed: GPU writes by whole buffers, because another input may make it write more; CPU writes by bytes.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_format::{Access, RegionKind, TensorKind};
use gpureplay_tensors::Element;
use gpureplay_trace::{PAGE_SIZE, RegionFlags};
use mali_facts::job::WRITTEN_BACK;

use crate::capture::{Buffer, Capture};
use crate::error::CompileError;
use crate::pages::{Content, Moment};
use crate::ranges::Ranges;
use crate::tag::{Found, Role};

const PAGE: u64 = PAGE_SIZE as u64;

/// Pages with one kind and access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First GPU address.
    pub va: u64,
    /// Number of pages.
    pub pages: u32,
    /// GPU access.
    pub access: Access,
    /// Contents.
    pub kind: RegionKind,
}

/// The plan of a recording.
#[derive(Debug)]
pub struct Plan {
    /// First repeated job; earlier ones run once, in set-up.
    pub first_run: usize,
    /// First that can depend on an input.
    pub first_input: usize,
    /// Ascending.
    pub regions: Vec<Region>,
    /// Input tensors: never stored.
    pub masked: Ranges,
    /// Loaded by set-up, as before the first job.
    pub load: Ranges,
    /// CPU changes, by job.
    pub before_job: Vec<Ranges>,
    /// Later contents that set-up loads: nothing earlier sees them.
    pub early: Vec<(Moment, Ranges)>,
    /// To its value before job `first_run`.
    pub restore: Ranges,
    /// Bound again in every run: their memory is restored.
    pub rebind: Vec<usize>,
    /// Mapped pages with nothing to load.
    pub scratch_pages: u64,
}

/// Plans a recording.
pub fn plan(capture: &Capture, tensors: &[Found]) -> Result<Plan, CompileError> {
    let first_of = |role| {
        let of_role = tensors.iter().filter(|t| t.role == role);
        of_role.map(|t| t.job).min()
    };
    // Without inputs, an app begins with its states.
    let first_run = first_of(Role::Input).or_else(|| first_of(Role::State));
    let first_run = first_run.unwrap_or(0);
    let planner = Planner {
        capture,
        kinds: kinds(capture, tensors)?,
        masked: memory_of(tensors, Role::Input),
        states: memory_of(tensors, Role::State),
        chunks: chunks_by_page(tensors),
        smallest: smallest(&capture.buffers),
        computed: computed(capture),
        first_run,
    };
    let mut plan = planner.plan()?;
    states_are_left_alone(&plan, tensors)?;
    plan.rebind = weights_to_rebind(capture, &plan, tensors)?;
    // Restoring their results would restore the recorded weights' results: then set-up jobs belong to the run.
    let weights = tensors.iter().any(|t| t.role == Role::Weight);
    if weights && first_run > 0 && planner.restores_results(&plan) {
        plan = Planner {
            first_run: 0,
            ..planner
        }
        .plan()?;
        plan.rebind = weights_to_rebind(capture, &plan, tensors)?;
    }
    plan.first_input = first_run;
    Ok(plan)
}

/// Pages in which a job wrote more than status in its headers.
fn computed(capture: &Capture) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    for job in 0..capture.jobs.len() {
        let moment = Moment::after(job);
        for va in capture.memory.changed(moment) {
            let changed = capture.memory.difference(moment, *va);
            if !out.contains(va) && !without_headers(capture, job, *va, changed).is_empty() {
                out.insert(*va);
            }
        }
    }
    out
}

fn joined(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    const GAP: usize = 32;
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (start, end) in ranges {
        match out.last_mut() {
            Some((_, last)) if start - *last < GAP => *last = *end,
            _ => out.push((*start, *end)),
        }
    }
    out
}

/// Addresses without the bytes of this job's headers that the GPU writes.
fn without_headers(
    capture: &Capture,
    job: usize,
    va: u64,
    offsets: Vec<(usize, usize)>,
) -> Vec<(u64, u64)> {
    let mut written_back = Ranges::default();
    for header in capture.jobs[job].headers.in_page(va) {
        written_back.add(header, header.saturating_add(WRITTEN_BACK));
    }
    offsets
        .into_iter()
        .flat_map(|(start, end)| written_back.outside(va + start as u64, va + end as u64))
        .collect()
}

/// An app frees a weight when the GPU has its own form of it, and the driver reuses the memory. A weight still whole at
/// a run's start may be read.
///
/// # Errors
/// The app itself loads a weight in the repeated part.
fn weights_to_rebind(
    capture: &Capture,
    plan: &Plan,
    tensors: &[Found],
) -> Result<Vec<usize>, CompileError> {
    let weights = tensors.iter().enumerate();
    let weights = weights.filter(|(_, tensor)| tensor.role == Role::Weight);
    let weights: Vec<_> = weights
        .map(|(index, weight)| (index, weight, weight_chunks(weight)))
        .collect();
    let pages = by_page(weights.iter().map(|(_, _, chunks)| chunks.as_slice()));
    let mut loaded = None;
    for job in plan.first_run + 1..capture.jobs.len() {
        let moment = Moment::before(job);
        for (start, end) in plan.before_job[job].iter() {
            let there = pages.range(start - start % PAGE..end);
            for (number, at) in there.flat_map(|(_, there)| there) {
                let (_, weight, chunks) = &weights[*number];
                let (chunk, place) = (&chunks[*at], (*number, job, *at));
                if loaded.as_ref().is_none_or(|(first, _)| place < *first)
                    && chunk.va < end
                    && start < chunk.end()
                    && chunk.is_at(capture, moment)
                {
                    let name = weight.name.clone();
                    let va = chunk.va;
                    loaded = Some((place, CompileError::WeightInRun { name, va, job }));
                }
            }
        }
    }
    if let Some((_, error)) = loaded {
        return Err(error);
    }
    let mut out = Vec::new();
    for (index, weight, chunks) in weights {
        let at = |moment| move |chunk: &Chunk<'_>| chunk.is_at(capture, moment);
        let restored = chunks
            .iter()
            .any(|chunk| plan.restore.touches(chunk.va, chunk.end()));
        let start = Moment::before(plan.first_run.max(weight.job));
        if restored && chunks.iter().all(at(start)) {
            out.push(index);
        }
    }
    Ok(out)
}

fn by_page<'a>(
    weights: impl Iterator<Item = &'a [Chunk<'a>]>,
) -> BTreeMap<u64, Vec<(usize, usize)>> {
    let mut out: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
    for (weight, chunks) in weights.enumerate() {
        for (index, chunk) in chunks.iter().enumerate() {
            let there = out.entry(chunk.va - chunk.va % PAGE).or_default();
            there.push((weight, index));
        }
    }
    out
}

fn states_are_left_alone(plan: &Plan, tensors: &[Found]) -> Result<(), CompileError> {
    let states = tensors.iter().filter(|t| t.role == Role::State);
    let later = plan.before_job.iter().enumerate().skip(plan.first_run + 1);
    let mut all = Ranges::default();
    for (start, end) in later.clone().flat_map(|(_, ranges)| ranges.iter()) {
        all.add(start, end);
    }
    for state in states {
        let size = u64::from(state.layout.dtype.size());
        for run in state.layout.runs() {
            let end = run.address + run.count * size;
            if !all.touches(run.address, end) {
                continue;
            }
            let mut written = later.clone();
            if let Some((job, _)) = written.find(|(_, ranges)| ranges.touches(run.address, end)) {
                return Err(CompileError::StateInRun {
                    name: state.name.clone(),
                    va: run.address,
                    job,
                });
            }
        }
    }
    Ok(())
}

/// A weight's part in one page.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// GPU address.
    pub va: u64,
    /// Recorded bytes.
    pub bytes: &'a [u8],
}

impl Chunk<'_> {
    /// Address after the last byte.
    pub fn end(&self) -> u64 {
        self.va + self.bytes.len() as u64
    }

    /// Whether memory holds it.
    pub fn is_at(&self, capture: &Capture, moment: Moment) -> bool {
        let offset = (self.va % PAGE) as usize;
        let page = capture.memory.page(moment, self.va - self.va % PAGE);
        page[offset..offset + self.bytes.len()] == *self.bytes
    }
}

fn chunks_by_page(tensors: &[Found]) -> BTreeMap<u64, Vec<Chunk<'_>>> {
    let mut out: BTreeMap<u64, Vec<Chunk<'_>>> = BTreeMap::new();
    let weights = tensors.iter().filter(|t| t.role == Role::Weight);
    for chunk in weights.flat_map(weight_chunks) {
        out.entry(chunk.va - chunk.va % PAGE)
            .or_default()
            .push(chunk);
    }
    out
}

/// A weight's parts, one per page.
pub fn weight_chunks(weight: &Found) -> Vec<Chunk<'_>> {
    let size = weight.layout.dtype.bytes();
    let mut out = Vec::new();
    for run in weight.layout.runs() {
        let from = run.element as usize * size;
        let mut rest = &weight.tensor.bytes()[from..from + run.count as usize * size];
        let mut va = run.address;
        while !rest.is_empty() {
            let length = rest.len().min((PAGE - va % PAGE) as usize);
            let (bytes, later) = rest.split_at(length);
            out.push(Chunk { va, bytes });
            va += length as u64;
            rest = later;
        }
    }
    out
}

/// A role's kind in a recording.
pub fn tensor_kind(role: Role) -> TensorKind {
    match role {
        Role::Input => TensorKind::Input,
        Role::Output => TensorKind::Output,
        Role::Weight => TensorKind::Weight,
        Role::Intermediate => TensorKind::Intermediate,
        Role::State => TensorKind::State,
    }
}

fn memory_of(tensors: &[Found], role: Role) -> Ranges {
    let mut out = Ranges::default();
    for tensor in tensors.iter().filter(|t| t.role == role) {
        let size = u64::from(tensor.layout.dtype.size());
        for run in tensor.layout.runs() {
            out.add(run.address, run.address + run.count * size);
        }
    }
    out
}

fn kinds(
    capture: &Capture,
    tensors: &[Found],
) -> Result<BTreeMap<u64, (RegionKind, Access)>, CompileError> {
    let mut headers = BTreeSet::new();
    for job in &capture.jobs {
        for header in job.headers.iter() {
            headers.insert(header.address - header.address % PAGE);
        }
    }
    let mut tensor_pages: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let size = u64::from(tensor.layout.dtype.size());
        for run in tensor.layout.runs() {
            let first = run.address - run.address % PAGE;
            let end = run.address + run.count * size;
            for va in (first..end).step_by(PAGE_SIZE) {
                tensor_pages.insert(va, index);
            }
        }
    }
    let mut out = BTreeMap::new();
    let default = RegionFlags::READ | RegionFlags::WRITE;
    let dumped = capture.memory.addresses().map(|va| (va, default));
    for (va, flags) in dumped.chain(capture.access.iter().map(|(va, flags)| (*va, *flags))) {
        let write = flags.contains(RegionFlags::WRITE);
        let data_access = if write {
            Access::READ_WRITE
        } else {
            Access::READ
        };
        let kind = if flags.contains(RegionFlags::EXECUTE) {
            (RegionKind::Code, Access::READ_EXECUTE)
        } else if headers.contains(&va) {
            (RegionKind::Descriptors, data_access)
        } else {
            (RegionKind::Data, data_access)
        };
        out.insert(va, kind);
    }
    for (start, end) in scratch(capture, 0..capture.jobs.len()).iter() {
        // A buffer may be announced with any size.
        for (va, kind) in out.range_mut(start..end) {
            if kind.0 == RegionKind::Data && !headers.contains(va) && !tensor_pages.contains_key(va)
            {
                kind.0 = RegionKind::Scratch;
            }
        }
    }
    for (va, index) in tensor_pages {
        let what = match out.get(&va) {
            Some((RegionKind::Code, _)) => "shader code",
            Some((RegionKind::Descriptors, _)) => "job descriptors",
            _ => continue,
        };
        return Err(CompileError::TensorPage {
            name: tensors[index].name.clone(),
            va,
            what,
        });
    }
    Ok(out)
}

/// Thread-local and workgroup-local storage of these jobs. Only announced buffers: without an end it is unknown what
/// else is there.
pub(crate) fn scratch(capture: &Capture, jobs: std::ops::Range<usize>) -> Ranges {
    let mut bases = BTreeSet::new();
    for job in jobs {
        let bases_of = capture.launches(job).into_iter();
        let bases_of = bases_of.flat_map(|launch| launch.storage);
        bases.extend(bases_of.filter(|base| *base != 0));
    }
    // A buffer that starts with the storage is nothing else.
    let mut out = Ranges::default();
    for buffer in capture.buffers.iter().filter(|b| bases.contains(&b.va)) {
        out.add(buffer.va, buffer.va.saturating_add(buffer.size));
    }
    out
}

type Span = (u64, u64);

fn smallest(buffers: &[Buffer]) -> BTreeMap<u64, (u64, Span)> {
    let spans = buffers.iter().map(|b| (b.va, b.va.saturating_add(b.size)));
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_by_key(|(start, end)| end - start);
    let (mut out, mut taken) = (BTreeMap::new(), Ranges::default());
    for (start, end) in spans {
        for (from, to) in taken.outside(start, end) {
            out.insert(from, (to, (start, end)));
        }
        taken.add(start, end);
    }
    out
}

struct Planner<'a> {
    capture: &'a Capture,
    kinds: BTreeMap<u64, (RegionKind, Access)>,
    masked: Ranges,
    /// Never restored.
    states: Ranges,
    chunks: BTreeMap<u64, Vec<Chunk<'a>>>,
    /// First address to end and buffer.
    smallest: BTreeMap<u64, (u64, Span)>,
    computed: BTreeSet<u64>,
    first_run: usize,
}

impl Planner<'_> {
    fn kind(&self, va: u64) -> RegionKind {
        self.kinds
            .get(&(va - va % PAGE))
            .map_or(RegionKind::Data, |k| k.0)
    }

    fn plan(&self) -> Result<Plan, CompileError> {
        let capture = self.capture;
        let jobs = capture.jobs.len();
        let mut restore = self.written_by_gpu(self.first_run..jobs)?;
        let mut before_job = vec![Ranges::default(); jobs];
        let mut early: BTreeMap<Moment, Ranges> = BTreeMap::new();
        for (job, ranges) in before_job.iter_mut().enumerate().skip(1) {
            let moment = Moment::before(job);
            for va in capture.memory.changed(moment).iter().copied() {
                let kind = self.kind(va);
                if kind == RegionKind::Scratch {
                    continue;
                }
                let changed = self.changed_by_cpu(job, va);
                if job <= self.first_run {
                    // Set-up repeats all CPU changes in order.
                    for (start, end) in changed {
                        ranges.add(start, end);
                    }
                    continue;
                }
                if self.loads_early(job, va, kind, &restore)? {
                    let early = early.entry(moment).or_default();
                    changed
                        .iter()
                        .for_each(|(start, end)| early.add(*start, *end));
                } else {
                    for (start, end) in changed {
                        ranges.add(start, end);
                        restore.add(start, end);
                    }
                }
            }
        }
        self.drop_unseen(&mut restore);
        let mut kept = Ranges::default();
        for (start, end) in restore.iter() {
            for (start, end) in self.states.outside(start, end) {
                kept.add(start, end);
            }
        }
        let restore = kept;
        let mut load = Ranges::default();
        for va in capture.memory.changed(Moment::before(0)) {
            if self.kind(*va) == RegionKind::Scratch {
                continue;
            }
            // Unless set-up jobs may read it.
            let skip = if self.first_run == 0 {
                restore.clone_within(*va)
            } else {
                Ranges::default()
            };
            for (start, end) in skip.outside(*va, va + PAGE) {
                load.add(start, end);
            }
        }
        Ok(Plan {
            first_run: self.first_run,
            first_input: self.first_run,
            regions: self.regions(),
            masked: self.masked.clone(),
            load,
            before_job,
            early: early.into_iter().collect(),
            restore,
            rebind: Vec::new(),
            scratch_pages: self
                .kinds
                .values()
                .filter(|k| k.0 == RegionKind::Scratch)
                .count() as u64,
        })
    }

    fn written_by_gpu(&self, jobs: std::ops::Range<usize>) -> Result<Ranges, CompileError> {
        let mut out = Ranges::default();
        // Skip nested buffers.
        let mut widened = Ranges::default();
        for job in jobs {
            let moment = Moment::after(job);
            for va in self.capture.memory.changed(moment).iter().copied() {
                let kind = self.kind(va);
                if kind == RegionKind::Scratch || out.within(va, va + PAGE) == [(va, va + PAGE)] {
                    continue;
                }
                let written =
                    self.without_headers(job, va, self.capture.memory.difference(moment, va));
                if written.is_empty() {
                    continue;
                }
                if kind == RegionKind::Code {
                    return Err(CompileError::CodeChanged {
                        va,
                        what: "written by the GPU",
                        job,
                    });
                }
                let (start, end) = self.buffer(va);
                out.add(va, va + PAGE);
                for (start, end) in widened.outside(start, end) {
                    for (page, (kind, _)) in self.kinds.range(start..end) {
                        if *kind == RegionKind::Data {
                            out.add(*page, page + PAGE);
                        }
                    }
                }
                widened.add(start, end);
            }
        }
        Ok(out)
    }

    fn buffer(&self, va: u64) -> Span {
        let found = self.smallest.range(..=va).next_back();
        let found = found.filter(|(_, (end, _))| va < *end);
        found.map_or((va, va.saturating_add(PAGE)), |(_, (_, buffer))| *buffer)
    }

    /// Without what the replay prepares itself.
    fn changed_by_cpu(&self, job: usize, va: u64) -> Vec<(u64, u64)> {
        let moment = Moment::before(job);
        let mut changed = self.capture.memory.difference(moment, va);
        if !self.computed.contains(&va) {
            // An action costs as much as a few bytes more.
            changed = joined(&changed);
        }
        let mut all = Ranges::default();
        for (start, end) in self.without_headers(job, va, changed) {
            all.add(start, end);
        }
        // A change may share bytes with the recorded weight, but not with its substitute.
        for chunk in self.chunks.get(&va).map_or(&[][..], Vec::as_slice) {
            let before = moment.previous();
            if all.touches(chunk.va, chunk.end())
                && before.is_some_and(|before| chunk.is_at(self.capture, before))
            {
                all.add(chunk.va, chunk.end());
            }
        }
        all.iter()
            .flat_map(|(start, end)| self.masked.outside(start, end))
            .collect()
    }

    fn without_headers(
        &self,
        job: usize,
        va: u64,
        offsets: Vec<(usize, usize)>,
    ) -> Vec<(u64, u64)> {
        without_headers(self.capture, job, va, offsets)
    }

    fn loads_early(
        &self,
        job: usize,
        va: u64,
        kind: RegionKind,
        restore: &Ranges,
    ) -> Result<bool, CompileError> {
        let memory = &self.capture.memory;
        let moment = Moment::before(job);
        if kind == RegionKind::Code {
            // No earlier job can have run it.
            let old = moment
                .previous()
                .and_then(|m| memory.at(m, va))
                .unwrap_or(Content::ZERO);
            let old = memory.pool.bytes(old);
            let added = memory.difference(moment, va).iter().all(|(s, e)| {
                old[*s..*e]
                    .iter()
                    .zip(&memory.page(moment, va)[*s..*e])
                    .all(|(o, n)| o == n || *o == 0)
            });
            return if added {
                Ok(true)
            } else {
                Err(CompileError::CodeChanged {
                    va,
                    what: "rewritten",
                    job,
                })
            };
        }
        // The page appears with this change and stays, except for job headers.
        let unchanged_later = memory.history(va).iter().all(|(m, _)| {
            *m == moment
                || m.is_after()
                    && self
                        .without_headers(m.job(), va, memory.difference(*m, va))
                        .is_empty()
        });
        Ok(unchanged_later
            && memory.first_seen(va) == Some(moment)
            && !restore.touches(va, va + PAGE))
    }

    fn drop_unseen(&self, restore: &mut Ranges) {
        let mut out = Ranges::default();
        for (start, end) in restore.iter() {
            let mut at = start;
            while at < end {
                let page = at - at % PAGE;
                let stop = end.min(page + PAGE);
                let kind = self.kinds.get(&page).map(|k| k.0);
                if matches!(kind, Some(RegionKind::Data | RegionKind::Descriptors)) {
                    out.add(at, stop);
                }
                at = stop;
            }
        }
        *restore = out;
    }

    fn restores_results(&self, plan: &Plan) -> bool {
        (0..self.first_run).any(|job| {
            let moment = Moment::after(job);
            self.capture.memory.changed(moment).iter().any(|va| {
                self.without_headers(job, *va, self.capture.memory.difference(moment, *va))
                    .iter()
                    .any(|(s, e)| plan.restore.touches(*s, *e))
            })
        })
    }

    fn regions(&self) -> Vec<Region> {
        let mut out: Vec<Region> = Vec::new();
        for (va, (kind, access)) in &self.kinds {
            match out.last_mut() {
                Some(last)
                    if last.va + u64::from(last.pages) * PAGE == *va
                        && last.kind == *kind
                        && last.access == *access =>
                {
                    last.pages += 1;
                }
                _ => out.push(Region {
                    va: *va,
                    pages: 1,
                    access: *access,
                    kind: *kind,
                }),
            }
        }
        out
    }
}

impl Ranges {
    fn clone_within(&self, page: u64) -> Ranges {
        let mut out = Ranges::default();
        for (start, end) in self.within(page, page + PAGE) {
            out.add(start, end);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_buffers_the_smallest_counts() {
        let buffer = |va, size| Buffer { va, size };
        let buffers = [
            buffer(0x1000, 0x9000),
            buffer(0x2000, 0x2000),
            buffer(0x3000, 0x2000),
            buffer(0x3000, 0x3000),
            buffer(0x8000, 0),
            buffer(0xf000, u64::MAX),
        ];
        let found = smallest(&buffers);
        for va in (0..0x12).map(|page| page * PAGE) {
            let all = buffers.iter().map(|b| (b.va, b.va.saturating_add(b.size)));
            let holding = all.filter(|(start, end)| (*start..*end).contains(&va));
            let expected = holding.min_by_key(|(start, end)| end - start);
            let part = found.range(..=va).next_back();
            let part = part.filter(|(_, (end, _))| va < *end);
            assert_eq!(part.map(|(_, (_, span))| *span), expected, "{va:#x}");
        }
    }
}
