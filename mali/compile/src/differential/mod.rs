// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two recordings of one app may differ only in the inputs.
//!
//! A difference outside bound tensors depends on the input in a way that no replay reproduces: a value that the CPU
//! computed, a shape, a copy that tagging missed.

pub(crate) mod unexplained;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use gpureplay_tensors::Tensor;
use gpureplay_trace::PAGE_SIZE;
use mali_facts::JobType;
use mali_facts::job::WRITTEN_BACK;

pub use unexplained::Unexplained;

use crate::capture::Capture;
use crate::mapped::Mapped;
use crate::pages::{Moment, PageBytes, differing};
use crate::ranges::Ranges;
use crate::relocation::Renaming;
use crate::tag::{Found, Role};

const LISTED: usize = 3;

/// What a comparison covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Written bytes that are the same in both runs.
    pub same_bytes: u64,
    /// Different bytes in bound tensors.
    pub explained_bytes: u64,
    /// Second-run tensors compared with their files.
    pub tensors: usize,
    /// Words that differ because buffers have other addresses.
    pub renamed_addresses: u64,
}

/// Compares two runs.
///
/// `found` are the first run's tensors, `second_files` the second run's files by name; tensors without a second
/// file must be equal. `earlier` is memory written in earlier turns of a loop, of which a replay repeats the last
/// ([`crate::notes::Proposal::earlier`]).
///
/// # Errors
/// The first unexplained kind of difference.
pub fn compare(
    first: &Capture,
    found: &[Found],
    second: &Capture,
    second_files: &[(String, Tensor)],
    earlier: &[Range<u64>],
) -> Result<Agreement, Unexplained> {
    same_program(first, second)?;
    let mut agreement = Agreement::default();
    let mut bound = Ranges::default();
    let given = |t: &&Found| matches!(t.role, Role::Input | Role::Weight | Role::State);
    for tensor in found.iter().filter(given) {
        let size = u64::from(tensor.layout.dtype.size());
        for run in tensor.layout.runs() {
            bound.add(run.address, run.address + run.count * size);
        }
    }
    for range in earlier {
        bound.add(range.start, range.end);
    }
    let mut unexplained = Ranges::default();
    let (mut list, mut more) = (Vec::new(), false);
    let mut mapped = [Mapped::new(first), Mapped::new(second)];
    let find = |job| {
        mapped.iter_mut().for_each(|mapped| mapped.go_to(job));
        Renaming::find([first, second], &mapped, job)
    };
    let renamings: Vec<Renaming> = (0..first.jobs.len()).map(find).collect();
    let mut runs = Runs::new(first, second);
    for (job, renaming) in renamings.iter().enumerate() {
        let moment = Moment::before(job);
        runs.go_to(job);
        let mut pages = BTreeSet::new();
        for va in first.memory.changed(moment) {
            pages.insert((*va, renaming.second_page(*va)));
        }
        for va in second.memory.changed(moment) {
            pages.insert((renaming.first_page(*va), *va));
        }
        for (va, other) in pages {
            let (a, b) = (
                first.memory.page(moment, va),
                second.memory.page(moment, other),
            );
            let mut written = Ranges::default();
            for (capture, page) in [(first, va), (second, other)] {
                for (start, end) in capture.memory.difference(moment, page) {
                    written.add(va + start as u64, va + end as u64);
                }
            }
            let mut ignored = bound.clone_page(va);
            for (start, end) in runs.left_over(va, other, moment) {
                ignored.add(va + start as u64, va + end as u64);
            }
            for header in first.jobs[job].headers.in_page(va) {
                ignored.add(header, header.saturating_add(WRITTEN_BACK));
            }
            if a != b && runs.elsewhere(va, other, moment) {
                continue;
            }
            let (words, renamed) = renaming.different_words(a, b);
            agreement.renamed_addresses += renamed;
            let mut suspects = Ranges::default();
            words
                .iter()
                .for_each(|at| suspects.add(va + *at as u64, va + *at as u64 + 4));
            let mut different = 0;
            for (start, end) in differing(a, b) {
                for (start, end) in written.within(va + start as u64, va + end as u64) {
                    for (start, end) in suspects.within(start, end) {
                        different += end - start;
                        let outside = ignored.outside(start, end);
                        agreement.explained_bytes +=
                            (end - start) - outside.iter().map(|(s, e)| e - s).sum::<u64>();
                        for (start, end) in outside {
                            if list.len() < LISTED {
                                let at = (start - va) as usize..(end - va) as usize;
                                list.push(describe(job, start, &a[at.clone()], &b[at]));
                            } else {
                                more = true;
                            }
                            unexplained.add(start, end);
                        }
                    }
                }
            }
            agreement.same_bytes += written.bytes().saturating_sub(different);
        }
    }
    if !unexplained.is_empty() {
        return Err(Unexplained::Bytes {
            bytes: unexplained.bytes(),
            list,
            more,
        });
    }
    let by_name: HashMap<&str, &Found> = found.iter().rev().map(|t| (t.name.as_str(), t)).collect();
    for (name, tensor) in second_files {
        if let Some(found) = by_name.get(name.as_str()) {
            if let Some(renaming) = renamings.get(found.job) {
                same_tensor(second, renaming, found, tensor)?;
            }
            agreement.tensors += 1;
        }
    }
    Ok(agreement)
}

struct Runs<'a> {
    captures: [&'a Capture; 2],
    mapped: [Mapped<'a>; 2],
    /// Pages written into buffers that the other run lacks; made on demand.
    moved: Option<[Moved<'a>; 2]>,
}

/// The first two addresses of a page, enough to find another than a given one.
type Moved<'a> = HashMap<&'a PageBytes, (u64, Option<u64>)>;

impl<'a> Runs<'a> {
    fn new(first: &'a Capture, second: &'a Capture) -> Self {
        Self {
            captures: [first, second],
            mapped: [Mapped::new(first), Mapped::new(second)],
            moved: None,
        }
    }

    fn go_to(&mut self, job: usize) {
        self.mapped.iter_mut().for_each(|mapped| mapped.go_to(job));
        self.moved = None;
    }

    /// If an app chooses a place by its input's values, both runs have both buffers.
    fn reused(&self, va: u64) -> bool {
        let [first, second] = &self.mapped;
        first.holder(va) != second.holder(va)
    }

    fn moved(&self, capture: &'a Capture, moment: Moment) -> Moved<'a> {
        let mut out = Moved::default();
        for va in capture.memory.changed(moment) {
            if !self.reused(*va) || !wrote(capture, moment, *va) {
                continue;
            }
            let content = capture.memory.page(moment, *va);
            out.entry(content)
                .and_modify(|(_, other)| *other = other.or(Some(*va)))
                .or_insert((*va, None));
        }
        out
    }

    /// An app may fill a buffer long before a job reads it, so no address tells where each run has it.
    fn elsewhere(&mut self, va: u64, other: u64, moment: Moment) -> bool {
        let [first, second] = self.captures;
        let (in_first, in_second) = (wrote(first, moment, va), wrote(second, moment, other));
        if !in_first && !in_second {
            return false;
        }
        let moved = match self.moved.take() {
            Some(moved) => moved,
            None => self.captures.map(|capture| self.moved(capture, moment)),
        };
        let has = |from: &Capture, va: u64, to: &Moved<'_>| {
            let found = to.get(from.memory.page(moment, va));
            self.reused(va)
                && found.is_some_and(|(one, other)| *one != va || other.is_some_and(|it| it != va))
        };
        let [of_first, of_second] = &moved;
        let found = (!in_first || has(first, va, of_second))
            && (!in_second || has(second, other, of_first));
        self.moved = Some(moved);
        found
    }

    /// Bytes that differ because one run got new zeroed memory where the other reused a freed buffer: a matter of
    /// timing. Neither run wrote them, so nothing can depend on them.
    fn left_over(&self, va: u64, other: u64, moment: Moment) -> Vec<(usize, usize)> {
        let [first, second] = self.captures;
        let [in_first, in_second] = &self.mapped;
        let (first, second) = ((first, in_first, va), (second, in_second, other));
        let mut out = Vec::new();
        for ((new, in_new, at_new), (old, in_old, at_old)) in [(first, second), (second, first)] {
            if !in_new.is_new(moment, at_new) || in_old.is_new(moment, at_old) {
                continue;
            }
            let mut written = Ranges::default();
            for (start, end) in old.memory.difference(moment, at_old) {
                written.add(start as u64, end as u64);
            }
            let page = new.memory.page(moment, at_new);
            for (start, end) in differing(page, old.memory.page(moment, at_old)) {
                for (start, end) in written.outside(start as u64, end as u64) {
                    let bytes = start as usize..end as usize;
                    out.extend(bytes.filter(|at| page[*at] == 0).map(|at| (at, at + 1)));
                }
            }
        }
        out
    }
}

fn wrote(capture: &Capture, moment: Moment, va: u64) -> bool {
    !capture.memory.difference(moment, va).is_empty()
}

fn describe(job: usize, va: u64, a: &[u8], b: &[u8]) -> String {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .take(8)
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    };
    let dots = if a.len() > 8 { "…" } else { "" };
    format!(
        "{} bytes at {va:#x} before job {job} ({}{dots} and {}{dots})",
        a.len(),
        hex(a),
        hex(b)
    )
}

fn same_program(first: &Capture, second: &Capture) -> Result<(), Unexplained> {
    if first.gpu_id() != second.gpu_id() {
        return Err(Unexplained::Program(format!(
            "GPU {:#x} and {:#x}",
            first.gpu_id(),
            second.gpu_id()
        )));
    }
    if first.jobs.len() != second.jobs.len() {
        return Err(Unexplained::Program(format!(
            "{} and {} jobs",
            first.jobs.len(),
            second.jobs.len()
        )));
    }
    for (index, (a, b)) in first.jobs.iter().zip(&second.jobs).enumerate() {
        if a.slot != b.slot {
            return Err(Unexplained::Program(format!(
                "job {index} is on slot {} and on slot {}",
                a.slot, b.slot
            )));
        }
        let shape = |job: &crate::capture::Job| -> Vec<(Option<JobType>, u16)> {
            job.headers
                .iter()
                .map(|h| (h.job_type(), h.index()))
                .collect()
        };
        if shape(a) != shape(b) || a.count() != b.count() {
            return Err(Unexplained::Program(format!(
                "the chain of job {index} has other jobs"
            )));
        }
        for (a, b) in first.launches(index).iter().zip(second.launches(index)) {
            let (one, other) = (a.items(), b.items());
            if one != other {
                let text = |[x, y, z]: [u64; 3]| format!("{x} x {y} x {z}");
                return Err(Unexplained::Program(format!(
                    "job {index} computes {} and {} work-items",
                    text(one),
                    text(other)
                )));
            }
        }
    }
    Ok(())
}

fn same_tensor(
    second: &Capture,
    renaming: &Renaming,
    found: &Found,
    file: &Tensor,
) -> Result<(), Unexplained> {
    let what = match found.role {
        Role::Input => "input",
        Role::Output => "output",
        Role::Weight => "weight",
        Role::Intermediate => "intermediate",
        Role::State => "state",
    };
    let differs = |element: usize| Unexplained::Tensor {
        what,
        name: found.name.clone(),
        element: found.tensor.coordinates(element),
    };
    let converted = Tensor::from_fn(found.layout.dtype, file.shape(), |i| file.value(i));
    let expected = match converted {
        Ok(converted) if found.converted_from.is_some() => converted,
        _ => file.clone(),
    };
    if expected.dtype() != found.layout.dtype || expected.len() != found.tensor.len() {
        return Err(differs(0));
    }
    let moment = match found.role {
        Role::Output | Role::Intermediate => Moment::after(found.job),
        Role::Input | Role::Weight | Role::State => Moment::before(found.job),
    };
    let size = found.layout.dtype.size() as usize;
    for run in found.layout.runs() {
        let mut bytes = vec![0; run.count as usize * size];
        let mut mapped = true;
        let mut at = 0;
        while at < bytes.len() {
            let va = run.address + at as u64;
            let page = va - va % PAGE_SIZE as u64;
            let end = bytes
                .len()
                .min(at + (page + PAGE_SIZE as u64 - va) as usize);
            let there = renaming.second_page(page) + (va - page);
            mapped &= second.memory.read(moment, there, &mut bytes[at..end]);
            at = end;
        }
        let from = run.element as usize * size;
        let wanted = &expected.bytes()[from..from + bytes.len()];
        if !mapped || bytes != wanted {
            let at = bytes
                .iter()
                .zip(wanted)
                .position(|(a, b)| a != b)
                .unwrap_or(0);
            return Err(differs(run.element as usize + at / size));
        }
    }
    Ok(())
}

impl Ranges {
    fn clone_page(&self, va: u64) -> Ranges {
        let mut out = Ranges::default();
        for (start, end) in self.within(va, va + PAGE_SIZE as u64) {
            out.add(start, end);
        }
        out
    }
}
