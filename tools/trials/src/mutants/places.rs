// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places for job mutants.

use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{Access, Opcode, RegionKind, Section};
use zerocopy::IntoBytes;

use super::tables::{HIGH, region};
use crate::parts::{Parts, action};

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

/// Changes bytes, then runs the last chain again.
pub(super) fn resubmitted(
    parts: &Parts,
    patches: &[(u64, &[u8])],
    also: Option<ActionEntry>,
) -> Vec<u8> {
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

pub(super) struct Places<'a> {
    pub(super) parts: &'a Parts,
    pub(super) chain: u64,
    /// First region of each kind.
    pub(super) descriptors: u64,
    pub(super) code: u64,
    pub(super) scratch: u64,
    pub(super) data: u64,
    /// End of the descriptors, whose last 512 bytes are unused.
    pub(super) end: u64,
    pub(super) spare: u64,
    pub(super) input: u64,
    /// In no region.
    pub(super) nowhere: u64,
}

const NOWHERE: u64 = 0x7000_0000_0000;

impl<'a> Places<'a> {
    pub(super) fn of(parts: &'a Parts) -> Self {
        let mut copy = parts.clone();
        let mut region = |kind: RegionKind| {
            let mut regions = copy.regions().iter();
            let found = regions.find(|region| region.kind == kind.code());
            found.map_or((0, 0), |it| (it.va.get(), it.end()))
        };
        let (descriptors, end) = region(RegionKind::Descriptors);
        // Missing memory lies nowhere: a pointer of 0 may be no pointer.
        let [code, scratch, data] =
            [RegionKind::Code, RegionKind::Scratch, RegionKind::Data].map(|kind| {
                match region(kind).0 {
                    0 => NOWHERE,
                    va => va,
                }
            });
        // The address is in its first piece.
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
            nowhere: NOWHERE,
        }
    }

    pub(super) fn patched(&self, patches: &[(u64, &[u8])]) -> Vec<u8> {
        resubmitted(self.parts, patches, None)
    }

    pub(super) fn with(&self, at: u64, value: u64) -> Vec<u8> {
        self.patched(&[(self.chain + at, &value.to_le_bytes())])
    }

    /// With a region at [`HIGH`] and endless chains: small, but hours to check.
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
