// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains that are wrong: the file is sound, what it submits is not.

use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{Access, Opcode, RegionKind, Section};
use zerocopy::IntoBytes;

use super::Mutant;
use super::tables::{HIGH, region};
use crate::parts::{Parts, action};

/// Offsets in a compute job: next job, pointers of the draw section.
mod offset {
    pub(super) const CONTROL: u64 = 16;
    pub(super) const NEXT: u64 = 24;
    pub(super) const UNIFORM_BUFFERS: u64 = 64 + 4 * 6;
    pub(super) const PUSH_UNIFORMS: u64 = 64 + 4 * 12;
    pub(super) const STATE: u64 = 64 + 4 * 14;
    pub(super) const THREAD_STORAGE: u64 = 64 + 4 * 28;
}

/// The recording with one more submit of its last chain, some of whose bytes were changed before.
fn resubmitted(parts: &Parts, patches: &[(u64, &[u8])], also: Option<ActionEntry>) -> Vec<u8> {
    let mut parts = parts.clone();
    let Some(submit) = parts.last(Opcode::Submit).copied() else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for (va, bytes) in patches {
        let at = parts.section(Section::Data).len() as u64;
        parts.section(Section::Data).extend(*bytes);
        entries.push(action(Opcode::Seek, 0, 0, 0, at));
        entries.push(action(Opcode::Upload, 0, 0, bytes.len() as u32, *va));
    }
    entries.push(action(Opcode::Rearm, 0, 0, 0, submit.d.get()));
    entries.extend(also);
    entries.push(submit);
    parts.append(&entries);
    parts.file()
}

/// A job with as many uniform buffers as there can be, each as large as it can be, submitted again and again: a small file that
/// would take hours to look through.
fn endless_uniforms(parts: &Parts, (chain, state): (u64, u64), shader: u64) -> Vec<u8> {
    let mut parts = parts.clone();
    let added = region(HIGH, 16, Access::READ_WRITE, RegionKind::Data);
    parts.section(Section::Regions).extend(added.as_bytes());
    let Some(submit) = parts.last(Opcode::Submit).copied() else {
        return Vec::new();
    };
    let mut words = [0u8; 64];
    words[..8].copy_from_slice(&shader.to_le_bytes());
    words[16] = 255;
    let buffers = [(HIGH >> 4 << 12 | 0xfff).to_le_bytes(); 255].concat();
    let patches = [
        (chain + offset::UNIFORM_BUFFERS, HIGH.to_le_bytes().to_vec()),
        (chain + offset::STATE, state.to_le_bytes().to_vec()),
        (state, words.to_vec()),
        (HIGH, buffers),
    ];
    let mut entries = Vec::new();
    for (va, bytes) in patches {
        let at = parts.section(Section::Data).len() as u64;
        parts.section(Section::Data).extend(&bytes);
        entries.push(action(Opcode::Seek, 0, 0, 0, at));
        entries.push(action(Opcode::Upload, 0, 0, bytes.len() as u32, va));
    }
    for _ in 0..40 {
        entries.push(action(Opcode::Rearm, 0, 0, 0, chain));
        entries.push(submit);
    }
    parts.append(&entries);
    parts.file()
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let mut parts = parts.clone();
    let chain = parts.last(Opcode::Submit).map_or(0, |entry| entry.d.get());
    let region = |parts: &mut Parts, kind: RegionKind| {
        let mut regions = parts.regions().iter();
        let found = regions.find(|region| region.kind == kind.code());
        found.map_or((0, 0), |it| (it.va.get(), it.end()))
    };
    let (descriptors, end) = region(&mut parts, RegionKind::Descriptors);
    let code = region(&mut parts, RegionKind::Code).0;
    let scratch = region(&mut parts, RegionKind::Scratch).0;
    let data = region(&mut parts, RegionKind::Data).0;
    // The first tensor is an input; its first piece holds its address.
    let input = parts
        .section(Section::Pieces)
        .first_chunk()
        .map_or(0, |va| u64::from_le_bytes(*va));
    let nowhere = 0x7000_0000_0000u64;
    let spare = end - 256;
    let parts = &parts;
    let with =
        |at: u64, value: u64| resubmitted(parts, &[(chain + at, &value.to_le_bytes())], None);
    let table = |entry: u64| {
        let patches = [
            (chain + offset::UNIFORM_BUFFERS, &spare.to_le_bytes()[..]),
            (spare, &entry.to_le_bytes()[..]),
        ];
        resubmitted(parts, &patches, None)
    };
    let with_shader = |code: u64| {
        let mut state = [0; 64];
        state[..8].copy_from_slice(&code.to_le_bytes());
        let pointer = (chain + offset::STATE, &spare.to_le_bytes()[..]);
        resubmitted(parts, &[pointer, (spare, &state[..])], None)
    };
    let control = |job_type: u8| {
        let word = u32::from(job_type) << 1 | 1 | 1 << 16;
        resubmitted(
            parts,
            &[(chain + offset::CONTROL, &word.to_le_bytes())],
            None,
        )
    };
    rows![
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
        "uniforms without end", "deep-limit" => endless_uniforms(parts, (chain, spare), code);
        "shader in data", "shader-region" => with_shader(data);
        "shader outside memory", "shader-region" => with_shader(nowhere);
    ]
}
