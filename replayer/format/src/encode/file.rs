// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lays the tables out as a file.

use alloc::vec;
use alloc::vec::Vec;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{Builder, EncodeError};
use crate::checksum::{Checksum, checksum};
use crate::codes::{Opcode, Section, TensorKind};
use crate::layout::{
    ActionEntry, FAMILY_MALI, Header, MAGIC, MAJOR, Platform, SECTIONS, SectionEntry, TensorEntry,
};
use crate::view::Recording;

fn bytes<T: IntoBytes + Immutable>(table: &[T]) -> &[u8] {
    table.as_bytes()
}

impl Builder {
    /// Encodes the recording.
    ///
    /// # Errors
    /// The first thing that could not be stored.
    pub fn finish(mut self) -> Result<Vec<u8>, EncodeError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.regions.sort_by_key(|region| region.va.get());
        for pair in self.regions.windows(2) {
            if pair[0].end() > pair[1].va.get() {
                return Err(EncodeError::RegionsOverlap(
                    pair[0].va.get(),
                    pair[1].va.get(),
                ));
            }
        }
        if u32::try_from(self.actions.len()).is_err() || u32::try_from(self.strings.len()).is_err()
        {
            return Err(EncodeError::TooLarge);
        }
        let sections: [&[u8]; SECTIONS] = [
            bytes(&self.identity),
            bytes(&self.regions),
            bytes(&self.segments),
            bytes(&self.actions),
            bytes(&self.tensors),
            bytes(&self.pieces),
            bytes(&self.axes),
            &self.strings,
            &self.data,
        ];
        let file = assemble(self.platform, &sections);
        Recording::parse(&file).map_err(EncodeError::Internal)?;
        Ok(file)
    }
}

impl<'a> Recording<'a> {
    /// Bytes of all sections, in the order of kinds.
    pub fn sections(&self) -> [&'a [u8]; SECTIONS] {
        [
            bytes(self.identity()),
            bytes(self.regions()),
            bytes(self.segments()),
            bytes(self.action_entries()),
            bytes(self.tensors()),
            bytes(self.piece_entries()),
            bytes(self.axis_entries()),
            self.strings(),
            self.data(),
        ]
    }
}

fn minor(platform: Platform, sections: &[&[u8]; SECTIONS]) -> u16 {
    let section = |kind: Section| sections[usize::from(kind.code()) - 1];
    let (entries, _) = section(Section::Actions).as_chunks::<{ size_of::<ActionEntry>() }>();
    let launches = entries.iter().any(|entry| {
        ActionEntry::ref_from_bytes(entry).is_ok_and(|it| it.op == Opcode::Launch.code())
    });
    if launches || platform.family != FAMILY_MALI {
        return 3;
    }
    if platform.unused_cores != 0 {
        return 2;
    }
    let (entries, _) = section(Section::Tensors).as_chunks::<{ size_of::<TensorEntry>() }>();
    let state = entries.iter().any(|entry| {
        TensorEntry::ref_from_bytes(entry).is_ok_and(|it| it.kind == TensorKind::State.code())
    });
    state.into()
}

/// Adds header, section table and checksums. Checks nothing.
pub fn assemble(platform: Platform, sections: &[&[u8]; SECTIONS]) -> Vec<u8> {
    let start = size_of::<Header>() + SECTIONS * size_of::<SectionEntry>();
    let mut file = vec![0; start];
    let mut table = Vec::with_capacity(SECTIONS);
    for (section, kind) in sections.iter().zip(&Section::ALL[1..]) {
        let offset = file.len();
        file.extend_from_slice(section);
        file.resize(file.len().next_multiple_of(8), 0);
        table.push(SectionEntry {
            kind: U32::new(kind.code().into()),
            zero: U32::ZERO,
            offset: U64::new(offset as u64),
            length: U64::new(section.len() as u64),
            checksum: U64::new(checksum(&file[offset..])),
        });
    }
    let mut header = Header {
        magic: MAGIC,
        major: U16::new(MAJOR),
        minor: U16::new(minor(platform, sections)),
        section_count: U32::new(SECTIONS as u32),
        file_length: U64::new(file.len() as u64),
        gpu_id: U32::new(platform.gpu_id),
        flags: U32::new(platform.flags),
        checksum: U64::ZERO,
        unused_cores: U32::new(platform.unused_cores),
        family: U16::new(platform.family),
        zero: [0; 18],
    };
    let sum = Checksum::new()
        .update(header.as_bytes())
        .update(bytes(&table))
        .value();
    header.checksum.set(sum);
    let (head, rest) = file.split_at_mut(size_of::<Header>());
    head.copy_from_slice(header.as_bytes());
    rest[..bytes(&table).len()].copy_from_slice(bytes(&table));
    file
}
