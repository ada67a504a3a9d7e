// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two recordings of one app with different inputs must differ only in the inputs.
//!
//! What the app writes into GPU memory is compared job by job, byte by byte. A byte that differs and lies in no bound tensor
//! depends on the input in a way that a replay would not reproduce: a value that the CPU computed from it, a shape, a
//! copy that tagging missed.

pub(crate) mod unexplained;

use std::collections::BTreeSet;
use std::ops::Range;

use gpureplay_io::Tensor;
use gpureplay_trace::PAGE_SIZE;
use mali_descriptors::JobType;
use mali_descriptors::job::WRITTEN_BACK;

pub use unexplained::Unexplained;

use crate::capture::Capture;
use crate::chain::work_items;
use crate::pages::{Moment, differing};
use crate::ranges::Ranges;
use crate::relocation::Renaming;
use crate::tag::{Found, Role};

/// Differences that are listed; more are counted.
const LISTED: usize = 8;

/// What a comparison covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Bytes that the app wrote and that are the same in both runs.
    pub same_bytes: u64,
    /// Bytes that differ and belong to bound tensors.
    pub explained_bytes: u64,
    /// Tensors of the second run that were compared with their files.
    pub tensors: usize,
    /// Words that differ because they are addresses of buffers that were allocated elsewhere.
    pub renamed_addresses: u64,
}

/// Compares two runs.
///
/// `found` are the tensors of the first run, `second_files` the files of the second by name; tensors without a second file
/// must be the same in both. `earlier` is what the app wrote into GPU memory in earlier turns of a loop, of which a replay repeats the last
/// one ([`crate::notes::Proposal::earlier`]).
///
/// # Errors
/// The first kind of difference that is not explained.
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
    let renamings: Vec<Renaming> = (0..first.jobs.len())
        .map(|job| Renaming::find(first, second, job))
        .collect();
    for (job, renaming) in renamings.iter().enumerate() {
        let moment = Moment::before(job);
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
            for (start, end) in left_over((first, va), (second, other), moment) {
                ignored.add(va + start as u64, va + end as u64);
            }
            for header in &first.jobs[job].headers {
                ignored.add(header.address, header.address + WRITTEN_BACK);
            }
            if a != b && elsewhere((first, va), (second, other), job) {
                continue;
            }
            let (words, renamed) = renaming.different_words(a, b);
            agreement.renamed_addresses += renamed;
            let mut suspects = Ranges::default();
            words
                .iter()
                .for_each(|at| suspects.add(va + *at as u64, va + *at as u64 + 8));
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
    for (name, tensor) in second_files {
        if let Some(found) = found.iter().find(|t| t.name == *name) {
            if let Some(renaming) = renamings.get(found.job) {
                same_tensor(second, renaming, found, tensor)?;
            }
            agreement.tensors += 1;
        }
    }
    Ok(agreement)
}

/// Whether what the app wrote into these pages before a job is also in the other run, whole, where the runs have different buffers.
///
/// An app may fill a buffer long before the job that reads it, or for none at all, so that no address says where each run has it.
fn elsewhere((first, va): (&Capture, u64), (second, other): (&Capture, u64), job: usize) -> bool {
    let moment = Moment::before(job);
    let wrote = |capture: &Capture, va: u64| !capture.memory.difference(moment, va).is_empty();
    // An app that chooses between two places by its input's values has both buffers in both runs.
    let reused = |va: u64| first.buffer(job, va) != second.buffer(job, va);
    let has = |from: &Capture, va: u64, to: &Capture| {
        let content = from.memory.page(moment, va);
        let written = to.memory.changed(moment).iter();
        reused(va)
            && written.copied().any(|there| {
                there != va
                    && to.memory.page(moment, there) == content
                    && wrote(to, there)
                    && reused(there)
            })
    };
    let (in_first, in_second) = (wrote(first, va), wrote(second, other));
    (in_first || in_second)
        && (!in_first || has(first, va, second))
        && (!in_second || has(second, other, first))
}

/// Bytes of a page that differ only because one run got new memory, of zeros, where the other one's runtime used a freed buffer again.
///
/// Which of the two happens is a matter of time. Nothing can depend on it: nobody wrote these bytes in either run.
fn left_over(
    first: (&Capture, u64),
    second: (&Capture, u64),
    moment: Moment,
) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for ((new, at_new), (old, at_old)) in [(first, second), (second, first)] {
        if !new.is_new(moment, at_new) || old.is_new(moment, at_old) {
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
        if shape(a) != shape(b) {
            return Err(Unexplained::Program(format!(
                "the chain of job {index} has other jobs"
            )));
        }
        let moment = Moment::before(index);
        for (a, b) in a.headers.iter().zip(&b.headers) {
            let of = |capture: &Capture, header| work_items(&capture.memory, moment, header);
            if let (Some(one), Some(other)) = (of(first, a), of(second, b))
                && one != other
            {
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

/// Whether a tensor of the second run lies where the first run's did.
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
    // The same conversion that the app did in the first run.
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
        // Page by page, because pages may have been renamed.
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
    /// The part of the set that lies in the page at `va`.
    fn clone_page(&self, va: u64) -> Ranges {
        let mut out = Ranges::default();
        for (start, end) in self.within(va, va + PAGE_SIZE as u64) {
            out.add(start, end);
        }
        out
    }
}
