// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains that are wrong: the file is sound, what it submits is not.

use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{Access, Opcode, RegionKind, Section};
use mali_facts::Profile;
use mali_facts::registers::GpuId;
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

/// Actions that put bytes into memory.
fn uploads(parts: &mut Parts, patches: &[(u64, &[u8])]) -> Vec<ActionEntry> {
    let mut entries = Vec::new();
    for (va, bytes) in patches.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let at = parts.section(Section::Data).len() as u64;
        parts.section(Section::Data).extend(*bytes);
        entries.push(action(Opcode::Seek, 0, 0, 0, at));
        entries.push(action(Opcode::Upload, 0, 0, bytes.len() as u32, *va));
    }
    entries
}

/// The recording with one more submit of its last chain, some of whose bytes were changed before.
fn resubmitted(parts: &Parts, patches: &[(u64, &[u8])], also: Option<ActionEntry>) -> Vec<u8> {
    let mut parts = parts.clone();
    let Some(submit) = parts.last(Opcode::Submit).copied() else {
        return Vec::new();
    };
    let mut entries = uploads(&mut parts, patches);
    entries.push(action(Opcode::Rearm, 0, 0, 0, submit.d.get()));
    entries.extend(also);
    entries.push(submit);
    parts.append(&entries);
    parts.file()
}

/// Where a recording has what its mutants point to.
pub(super) struct Places<'a> {
    parts: &'a Parts,
    /// Header of the last chain's first job.
    pub(super) chain: u64,
    /// Start of the first region of each kind.
    descriptors: u64,
    pub(super) code: u64,
    pub(super) scratch: u64,
    pub(super) data: u64,
    /// Where the region of descriptors ends, and bytes at its end that no job needs.
    pub(super) end: u64,
    pub(super) spare: u64,
    /// Where the first tensor lies, an input.
    pub(super) input: u64,
    /// In no region.
    pub(super) nowhere: u64,
}

impl<'a> Places<'a> {
    fn of(parts: &'a Parts) -> Self {
        let mut copy = parts.clone();
        let mut region = |kind: RegionKind| {
            let mut regions = copy.regions().iter();
            let found = regions.find(|region| region.kind == kind.code());
            found.map_or((0, 0), |it| (it.va.get(), it.end()))
        };
        let (descriptors, end) = region(RegionKind::Descriptors);
        let [code, scratch, data] =
            [RegionKind::Code, RegionKind::Scratch, RegionKind::Data].map(|kind| region(kind).0);
        // Its first piece holds its address.
        let input = copy.section(Section::Pieces).first_chunk();
        Self {
            parts,
            input: input.map_or(0, |va| u64::from_le_bytes(*va)),
            chain: copy.last(Opcode::Submit).map_or(0, |entry| entry.d.get()),
            descriptors,
            code,
            scratch,
            data,
            end,
            spare: end - 512,
            nowhere: 0x7000_0000_0000,
        }
    }

    /// The recording with its last chain once more, after these bytes were uploaded.
    pub(super) fn patched(&self, patches: &[(u64, &[u8])]) -> Vec<u8> {
        resubmitted(self.parts, patches, None)
    }

    /// The same with eight bytes of the job.
    pub(super) fn with(&self, at: u64, value: u64) -> Vec<u8> {
        self.patched(&[(self.chain + at, &value.to_le_bytes())])
    }

    /// The recording with one more region of data at [`HIGH`] and its last chain again and again: a small file that would take hours to
    /// look through.
    pub(super) fn endless(&self, patches: &[(u64, &[u8])]) -> Vec<u8> {
        let mut parts = self.parts.clone();
        let added = region(HIGH, 16, Access::READ_WRITE, RegionKind::Data);
        parts.section(Section::Regions).extend(added.as_bytes());
        let Some(submit) = parts.last(Opcode::Submit).copied() else {
            return Vec::new();
        };
        let mut entries = uploads(&mut parts, patches);
        for _ in 0..40 {
            entries.push(action(Opcode::Rearm, 0, 0, 0, submit.d.get()));
            entries.push(submit);
        }
        parts.append(&entries);
        parts.file()
    }
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

/// Headers of jobs, which all architectures have in common.
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

/// What only a job of Bifrost names.
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
    // As many uniform buffers as there can be, each as large as it can be.
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
