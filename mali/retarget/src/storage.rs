// SPDX-License-Identifier: MIT OR Apache-2.0
//! Storage on the other GPU.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_format::{PAGE_SIZE, Recording};
use mali_facts::{LocalStorage, Profile};

use crate::rules::{Refusal, TargetRule};
use crate::survey::Job;

/// Bytes from a descriptor's start to its pointers.
const THREADS: u64 = offset("TLS base pointer");
const GROUPS: u64 = offset("WLS base pointer");

const fn offset(name: &str) -> u64 {
    match LocalStorage::LAYOUT.offset_of(name) {
        Some(offset) => offset,
        None => panic!("a name that does not exist does not compile"),
    }
}

/// Storage that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    /// Address in the recording.
    pub old: u64,
    /// Address for the other GPU.
    pub new: u64,
    /// Number.
    pub pages: u32,
}

/// Place, pointer's address, bytes on a GPU.
struct Named {
    base: u64,
    pointer: u64,
    bytes: u64,
}

fn named(at: u64, storage: &LocalStorage, gpu: &Profile) -> impl Iterator<Item = Named> {
    let cores = u64::from(gpu.core_id_range());
    let threads = storage
        .tls_bytes()
        .saturating_mul(u64::from(gpu.max_threads))
        .saturating_mul(cores);
    let groups = storage
        .wls_bytes()
        .saturating_mul(storage.wls_instances())
        .saturating_mul(cores);
    let all = [
        (storage.tls_base(), at.wrapping_add(THREADS), threads),
        (storage.wls_base(), at.wrapping_add(GROUPS), groups),
    ];
    let all = all.map(|(base, pointer, bytes)| Named {
        base,
        pointer,
        bytes,
    });
    all.into_iter()
        .filter(|named| named.base != 0 && named.bytes != 0)
}

fn of_jobs<'j>(jobs: &'j [Job], gpu: &'j Profile) -> impl Iterator<Item = (&'j Job, Named)> {
    jobs.iter().flat_map(move |job| {
        let storage = job.compute.as_ref().and_then(|job| job.storage.as_ref());
        let all = storage.map(|(at, storage)| named(*at, storage, gpu));
        all.into_iter().flatten().map(move |named| (job, named))
    })
}

pub(crate) fn ranges(jobs: &[Job], gpu: &Profile) -> Vec<(u64, u64)> {
    let all = of_jobs(jobs, gpu);
    let all = all.map(|(_, named)| (named.base, named.base.saturating_add(named.bytes)));
    let distinct: BTreeSet<(u64, u64)> = all.collect();
    distinct.into_iter().collect()
}

/// What grows, and its pointers: address, old and new value.
pub(crate) type Plan = (Vec<Grown>, BTreeSet<(u64, u64, u64)>);

/// Room is after all other memory.
pub(crate) fn plan(
    recording: &Recording<'_>,
    jobs: &[Job],
    gpu: &Profile,
) -> Result<Plan, Refusal> {
    let mut needed: BTreeMap<u64, (u64, (u32, u64))> = BTreeMap::new();
    for (job, named) in of_jobs(jobs, gpu) {
        if recording.region_of(named.base, named.bytes).is_none() {
            let most = needed.entry(named.base).or_insert((0, job.place()));
            most.0 = most.0.max(named.bytes);
        }
    }
    let mut free = recording.regions().last().map_or(0, |last| last.end());
    let mut grown = Vec::new();
    for (old, (bytes, place)) in needed {
        let pages = bytes.div_ceil(PAGE_SIZE.into());
        let refuse = |text: String| Refusal::of_job(TargetRule::Storage, place, text);
        let count =
            u32::try_from(pages).map_err(|_| refuse(format!("{bytes} bytes of storage")))?;
        // An unmapped page lies in front of it.
        let new = free.checked_add(PAGE_SIZE.into());
        let end = new.and_then(|new| new.checked_add(pages * u64::from(PAGE_SIZE)));
        let (Some(new), Some(end)) = (new, end) else {
            return Err(refuse(format!(
                "no room for {pages} pages behind {free:#x}"
            )));
        };
        if (end - 1).checked_shr(gpu.virtual_bits()).unwrap_or(0) != 0 {
            let bits = gpu.virtual_bits();
            let text = format!("{pages} pages at {new:#x} are beyond {bits} bits of address");
            return Err(refuse(text));
        }
        free = end;
        grown.push(Grown {
            old,
            new,
            pages: count,
        });
    }
    let mut pointers = BTreeSet::new();
    for (_, named) in of_jobs(jobs, gpu) {
        if let Some(area) = grown.iter().find(|area| area.old == named.base) {
            pointers.insert((named.pointer, area.old, area.new));
        }
    }
    Ok((grown, pointers))
}
