// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that a changed job needs, after all regions.

use gpureplay_format::layout::Region;
use gpureplay_format::{Access, RegionKind};
use gpureplay_jobs::Compute;
use mali_facts::{Draw, Profile, RendererState, clause_address, descriptor_address, job as places};
use mali_jobs::streams;
use zerocopy::little_endian::{U16, U32, U64};

use crate::error::{EditError, Result};
use crate::footprint::PAGE;
use crate::scene::Scene;
use crate::taken::{Places, Taken};
use crate::target::Target;

pub(crate) type Writes = Vec<(u64, Vec<u8>)>;

#[derive(Debug, Default)]
pub(crate) struct Addition {
    pub(crate) regions: Vec<Region>,
    /// Only set-up may upload it.
    pub(crate) code: Writes,
    /// New instructions, and the dispatch's new address.
    pub(crate) stream: Option<(Vec<u8>, u64)>,
}

impl Addition {
    pub(crate) fn added(&self, scene: &Scene, words: &Writes) -> Scene {
        let mut changed = scene.clone();
        changed.regions.extend(self.regions.iter().copied());
        for (address, bytes) in words.iter().chain(&self.code) {
            changed.memory.write(*address, bytes);
        }
        if let Some((stream, at)) = &self.stream {
            changed.words = streams::alone(stream, *at);
            changed.address = *at;
        }
        changed
    }
}

fn region(va: u64, bytes: u64, access: Access, kind: RegionKind) -> Region {
    Region {
        va: U64::new(va),
        pages: U32::new(u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX)),
        access: access.0,
        kind: kind.code(),
        zero: U16::ZERO,
    }
}

fn within_reach(end: u64, compute: &Compute) -> Result<()> {
    if end >> 32 == compute.shader >> 32 {
        return Ok(());
    }
    Err(EditError::Gate {
        gate: "executable region",
        reason: format!(
            "the next free memory ends at {end:#x}, which is not within the same 4 GiB as the recorded shader, where branches reach"
        ),
    })
}

/// Gives a shader memory and renderer state of its own: other jobs may share the recorded one. `end`: of the
/// recording's regions; `job`: its header's address. Returns changed words of descriptors.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn shader(
    code: &[u8],
    compute: &Compute,
    job: u64,
    end: u64,
) -> Result<(Writes, Addition)> {
    let (addition, at, state_at) = code_and_page(code, end);
    within_reach(state_at.saturating_add(PAGE), compute)?;
    let old = compute.job.draw.state();
    let recorded = compute.job.state.shader();
    let state: RendererState = compute
        .job
        .state
        .with("Shader", at | (recorded - clause_address(recorded)));
    let draw: Draw = compute
        .job
        .draw
        .with("State", state_at | (old - descriptor_address(old)));
    let words = vec![
        (state_at, state.to_bytes().to_vec()),
        (
            job.wrapping_add(places::COMPUTE_DRAW),
            draw.to_bytes().to_vec(),
        ),
    ];
    Ok((words, addition))
}

pub(crate) fn code_and_page(code: &[u8], end: u64) -> (Addition, u64, u64) {
    // An unmapped page lies before it.
    let at = end.saturating_add(PAGE);
    let bytes = (code.len() as u64).next_multiple_of(PAGE);
    let page = at.saturating_add(bytes);
    let addition = Addition {
        regions: vec![
            region(at, bytes, Access::READ_EXECUTE, RegionKind::Code),
            region(page, PAGE, Access::READ_WRITE, RegionKind::Descriptors),
        ],
        code: vec![(at, code.to_vec())],
        ..Addition::default()
    };
    (addition, at, page)
}

/// Whole job in memory of its own, as [`shader`]; only the header stays.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn whole(
    taken: &Taken,
    old: Target<'_>,
    profile: &Profile,
    job: u64,
    end: u64,
) -> Result<(Writes, Addition)> {
    let code = end.saturating_add(PAGE);
    let code_bytes = (taken.code().len() as u64).next_multiple_of(PAGE);
    let descriptors = code.saturating_add(code_bytes);
    let nowhere = Places {
        code,
        descriptors,
        threads: 0,
        groups: 0,
    };
    // Descriptors keep their length wherever storage lies.
    let laid = taken.lay(nowhere).descriptors;
    let ends = laid
        .iter()
        .map(|(at, bytes)| at.saturating_add(bytes.len() as u64));
    let length = ends.max().unwrap_or(descriptors) - descriptors;
    let length = length.max(1).next_multiple_of(PAGE);
    let [threads, groups] = taken.storage(profile);
    let mut addition = Addition {
        regions: vec![
            region(code, code_bytes, Access::READ_EXECUTE, RegionKind::Code),
            region(
                descriptors,
                length,
                Access::READ_WRITE,
                RegionKind::Descriptors,
            ),
        ],
        code: vec![(code, taken.code().to_vec())],
        ..Addition::default()
    };
    let mut next = descriptors.saturating_add(length);
    let mut storage = |bytes: u64| {
        let at = next.saturating_add(PAGE);
        if bytes > 0 {
            addition
                .regions
                .push(region(at, bytes, Access::READ_WRITE, RegionKind::Scratch));
            next = at.saturating_add(bytes);
        }
        at
    };
    let (threads, groups) = (storage(threads), storage(groups));
    if let Target::Bifrost(compute) = old {
        within_reach(next, compute)?;
    }
    let laid = taken.lay(Places {
        code,
        descriptors,
        threads,
        groups,
    });
    let mut words = laid.descriptors;
    let payload = laid.payload.into_iter();
    words.extend(payload.map(|(offset, bytes)| (job.wrapping_add(offset), bytes)));
    Ok((words, addition))
}
