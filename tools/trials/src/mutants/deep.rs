// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong job chains in sound files.

use gpureplay_format::{Opcode, Section};
use mali_facts::Profile;
use mali_facts::registers::GpuId;

use super::Mutant;
use super::places::{Places, resubmitted};
use super::tables::HIGH;
use crate::parts::{Parts, action};

/// Offsets in a compute job.
mod offset {
    pub(super) const CONTROL: u64 = 16;
    pub(super) const NEXT: u64 = 24;
    pub(super) const UNIFORM_BUFFERS: u64 = 64 + 4 * 6;
    pub(super) const PUSH_UNIFORMS: u64 = 64 + 4 * 12;
    pub(super) const STATE: u64 = 64 + 4 * 14;
    pub(super) const THREAD_STORAGE: u64 = 64 + 4 * 28;
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let places = Places::of(parts);
    let mut mutants = headers(&places);
    let profile = Profile::by_product(GpuId(parts.platform.gpu_id).product());
    let tables = profile.is_some_and(|profile| profile.architecture.has_resource_tables());
    mutants.extend(match tables {
        true => super::valhall::mutants(&places),
        false => bifrost(&places),
    });
    mutants
}

/// For a product without profile: may write zeros only.
pub(super) fn unknown_gpu(parts: &Parts) -> Vec<u8> {
    let mut parts = parts.clone();
    parts.platform.gpu_id |= 0x0774_0000;
    let product = parts.platform.gpu_id.to_le_bytes();
    parts.section(Section::Identity)[10..12].copy_from_slice(&product[2..]);
    let write = Opcode::Write.code();
    for entry in parts.actions().iter_mut().filter(|it| it.op == write) {
        entry.c = 0.into();
    }
    parts.file()
}

fn headers(places: &Places<'_>) -> Vec<Mutant> {
    let &Places {
        parts,
        chain,
        descriptors,
        code,
        data,
        nowhere,
        ..
    } = places;
    let with = |at: u64, value: u64| places.with(at, value);
    let control = |job_type: u8| {
        let word = u32::from(job_type) << 1 | 1 | 1 << 16;
        places.patched(&[(chain + offset::CONTROL, &word.to_le_bytes())])
    };
    rows![
        "GPU that nobody knows", "deep-gpu" => unknown_gpu(parts);
        "job chain that loops", "chain-loop" => with(offset::NEXT, chain);
        "next job in data", "chain-header" => with(offset::NEXT, data);
        "next job in code", "chain-header" => with(offset::NEXT, code);
        "next job in no region", "chain-header" => with(offset::NEXT, nowhere);
        "next job off its boundary", "chain-header" => with(offset::NEXT, chain + 8);
        "job made ready that the chain misses", "chain-complete" => {
        let other = if chain == descriptors {
            chain + 64
        } else {
            descriptors
        };
        resubmitted(parts, &[], Some(action(Opcode::Rearm, 0, 0, 0, other)))
    };
        "tiler job", "job-type" => control(7);
        "fragment job", "job-type" => control(9);
        "job of no type", "job-type" => control(0);
        "job of an unknown type", "job-type" => control(77);
    ]
}

fn bifrost(places: &Places<'_>) -> Vec<Mutant> {
    let &Places {
        chain,
        code,
        scratch,
        data,
        end,
        spare,
        input,
        nowhere,
        ..
    } = places;
    let with = |at: u64, value: u64| places.with(at, value);
    let table = |entry: u64| {
        places.patched(&[
            (chain + offset::UNIFORM_BUFFERS, &spare.to_le_bytes()),
            (spare, &entry.to_le_bytes()),
        ])
    };
    // Most uniform buffers, each of largest size.
    let endless = {
        let mut state = [0u8; 64];
        state[..8].copy_from_slice(&code.to_le_bytes());
        state[16] = 255;
        let buffers = [(HIGH >> 4 << 12 | 0xfff).to_le_bytes(); 255].concat();
        places.endless(&[
            (chain + offset::UNIFORM_BUFFERS, &HIGH.to_le_bytes()),
            (chain + offset::STATE, &spare.to_le_bytes()),
            (spare, &state),
            (HIGH, &buffers),
        ])
    };
    let with_shader = |code: u64| {
        let mut state = [0; 64];
        state[..8].copy_from_slice(&code.to_le_bytes());
        let pointer = (chain + offset::STATE, &spare.to_le_bytes()[..]);
        places.patched(&[pointer, (spare, &state)])
    };
    rows![
        "descriptor outside memory", "descriptor-region" => with(offset::STATE, nowhere);
        "descriptor at the end of the address space", "descriptor-region" => with(offset::STATE, u64::MAX - 63);
        "descriptor in code", "descriptor-region" => with(offset::STATE, code);
        "descriptor in scratch", "descriptor-region" => with(offset::STATE, scratch);
        "descriptor that an input overwrites", "descriptor-tensor" => with(offset::STATE, input & !63);
        "storage descriptor outside memory", "descriptor-region" => with(offset::THREAD_STORAGE, nowhere);
        "table of buffers outside memory", "descriptor-region" => with(offset::UNIFORM_BUFFERS, nowhere);
        "buffer outside memory", "buffer-region" => table(nowhere >> 4 << 12);
        "buffer beyond its region", "buffer-region" => table((end - 16) >> 4 << 12 | 0xfff);
        "push uniforms outside memory", "buffer-region" => with(offset::PUSH_UNIFORMS, nowhere);
        "uniforms without end", "deep-limit" => endless;
        "shader in data", "shader-region" => with_shader(data);
        "shader outside memory", "shader-region" => with_shader(nowhere);
    ]
}
