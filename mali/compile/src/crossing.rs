// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each part of a recording takes from earlier parts.
//!
//! To run only some parts, a caller gives all that these read and others compute. A trace does not show which
//! memory a job reads; one replay on the model does. Without that, every later part counts as a reader while the
//! value is in memory.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_format::{Piece, RegionKind};
use gpureplay_tensors::{ElementType, Layout, Tensor};
use gpureplay_trace::PAGE_SIZE;

use crate::capture::Capture;
use crate::pages::Moment;
use crate::plan::Plan;
use crate::tag::{Found, Role};

const PAGE: u64 = PAGE_SIZE as u64;

/// Pages that each submission reads, by its index in the capture.
pub type Reads = Vec<BTreeSet<u64>>;

/// A part of the program that can run by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// First job.
    pub start: usize,
    /// First job after it.
    pub end: usize,
}

/// Job and tensor index, in job order.
pub(crate) fn bindings(
    capture: &Capture,
    first_run: usize,
    parts: &[Part],
    tensors: &[Found],
    reads: Option<&Reads>,
) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let from = match tensor.role {
            Role::Input => tensor.job,
            Role::Intermediate => tensor.job.max(first_run) + 1,
            Role::Output | Role::Weight | Role::State => continue,
        };
        let pages = pages(tensor);
        let there = |job: usize| is_there(capture, tensor, job);
        for part in parts {
            let start = part.start.max(from);
            let found = match reads {
                // The app writes its input anew before this job.
                _ if tensor.role == Role::Input && start == from && start < part.end => Some(start),
                None if tensor.role == Role::Input => None,
                None => Some(start).filter(|job| *job < part.end && there(*job)),
                Some(reads) => (start..part.end)
                    .find(|job| reads.get(*job).is_some_and(|r| !r.is_disjoint(&pages)))
                    .filter(|job| there(*job)),
            };
            out.extend(found.map(|job| (job, index)));
        }
    }
    out.sort_unstable();
    out
}

/// Tensors of bytes for other memory that crosses parts, named after the computing part.
pub(crate) fn unnamed(
    capture: &Capture,
    plan: &Plan,
    parts: &[Part],
    tensors: &[Found],
    reads: &Reads,
) -> Vec<Found> {
    let named: Vec<(&Found, BTreeSet<u64>)> = tensors
        .iter()
        .filter(|tensor| tensor.role == Role::Intermediate || tensor.role == Role::Input)
        .map(|tensor| (tensor, pages(tensor)))
        .collect();
    // A state's memory inside a run is no value of its own.
    let states: BTreeSet<u64> = tensors
        .iter()
        .filter(|tensor| tensor.role == Role::State)
        .flat_map(pages)
        .collect();
    let mut by_writer: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for part in parts {
        for job in part.start..part.end {
            for va in reads.get(job).into_iter().flatten() {
                let now = Moment::before(job);
                let written = capture.memory.last_change(now, *va);
                let Some(written) = written.filter(|m| m.is_after()).map(Moment::job) else {
                    continue;
                };
                if states.contains(va) {
                    continue;
                }
                let elsewhere = written >= plan.first_run && written < part.start;
                let known = |(tensor, pages): &(&Found, BTreeSet<u64>)| {
                    pages.contains(va) && tensor.job < job && is_there(capture, tensor, job)
                };
                if elsewhere && is_data(plan, *va) && !named.iter().any(known) {
                    by_writer.entry(written).or_default().insert(*va);
                }
            }
        }
    }
    let mut out = Vec::new();
    for (job, pages) in by_writer {
        let part = parts
            .iter()
            .find(|part| (part.start..part.end).contains(&job));
        let stretches = stretches(&pages);
        for (number, (va, count)) in (1..).zip(&stretches) {
            let part = part.map_or("setup", |part| &part.name);
            let name = format!("{part}.memory{job}.{number}");
            out.extend(memory(capture, name, job, *va, *count));
        }
    }
    out
}

fn memory(capture: &Capture, name: String, job: usize, va: u64, pages: u64) -> Option<Found> {
    let bytes = usize::try_from(pages * PAGE).ok()?;
    let mut content = vec![0; bytes];
    capture.memory.read(Moment::after(job), va, &mut content);
    let extent = u32::try_from(bytes).ok()?;
    Some(Found {
        role: Role::Intermediate,
        name,
        shape: vec![extent],
        layout: Layout {
            dtype: ElementType::U8,
            pieces: vec![Piece::dense(extent, ElementType::U8, va)],
        },
        job,
        tensor: Tensor::new(ElementType::U8, &[bytes as u64], content).ok()?,
        converted_from: None,
    })
}

fn stretches(pages: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for va in pages {
        match out.last_mut() {
            Some((start, count)) if *start + *count * PAGE == *va => *count += 1,
            _ => out.push((*va, 1)),
        }
    }
    out
}

fn is_data(plan: &Plan, va: u64) -> bool {
    let after = plan.regions.partition_point(|region| region.va <= va);
    let region = after.checked_sub(1).and_then(|at| plan.regions.get(at));
    region.is_some_and(|region| region.kind == RegionKind::Data)
}

fn pages(tensor: &Found) -> BTreeSet<u64> {
    let size = u64::from(tensor.layout.dtype.size());
    let mut out = BTreeSet::new();
    for run in tensor.layout.runs() {
        let end = run.address + run.count * size;
        out.extend((run.address - run.address % PAGE..end).step_by(PAGE_SIZE));
    }
    out
}

fn is_there(capture: &Capture, tensor: &Found, job: usize) -> bool {
    let size = u64::from(tensor.layout.dtype.size());
    let then = match tensor.role {
        Role::Input | Role::Weight | Role::State => Moment::before(tensor.job),
        Role::Output | Role::Intermediate => Moment::after(tensor.job),
    };
    let now = Moment::before(job);
    tensor.layout.runs().all(|run| {
        let end = run.address + run.count * size;
        let mut at = run.address;
        while at < end {
            let page = at - at % PAGE;
            let stop = end.min(page + PAGE);
            let range = (at - page) as usize..(stop - page) as usize;
            if capture.memory.at(then, page) != capture.memory.at(now, page)
                && capture.memory.page(then, page).get(range.clone())
                    != capture.memory.page(now, page).get(range)
            {
                return false;
            }
            at = stop;
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_pages_are_one_stretch() {
        let pages = BTreeSet::from([0x1000, 0x2000, 0x4000]);
        assert_eq!(stretches(&pages), [(0x1000, 2), (0x4000, 1)]);
        assert_eq!(stretches(&BTreeSet::new()), []);
    }
}
