// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in parts.

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{
    ActionEntry, Header, PieceEntry, Platform, Region, SECTIONS, SectionEntry, Segment, TensorEntry,
};
use gpureplay_format::{Opcode, Section};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Sections, reassembled with right checksums.
#[derive(Clone, Debug)]
pub struct Parts {
    /// GPU.
    pub platform: Platform,
    /// By kind.
    pub sections: Vec<Vec<u8>>,
}

impl Parts {
    /// `None` if it is no recording.
    pub fn of(file: &[u8]) -> Option<Self> {
        let (header, rest) = Header::ref_from_prefix(file).ok()?;
        let (table, _) = <[SectionEntry; SECTIONS]>::ref_from_prefix(rest).ok()?;
        let bytes = |entry: &SectionEntry| {
            let start = usize::try_from(entry.offset.get()).ok()?;
            let length = usize::try_from(entry.length.get()).ok()?;
            Some(file.get(start..)?.get(..length)?.to_vec())
        };
        Some(Self {
            platform: header.platform(),
            sections: table.iter().map(bytes).collect::<Option<_>>()?,
        })
    }

    /// Reassembles the file.
    pub fn file(&self) -> Vec<u8> {
        let mut sections = [&[][..]; SECTIONS];
        for (to, from) in sections.iter_mut().zip(&self.sections) {
            *to = from;
        }
        assemble(self.platform, &sections)
    }

    /// The changed copy's file.
    pub fn changed(&self, change: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut parts = self.clone();
        change(&mut parts);
        parts.file()
    }

    /// A section's bytes.
    pub fn section(&mut self, section: Section) -> &mut Vec<u8> {
        &mut self.sections[usize::from(section.code()) - 1]
    }

    fn table<T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned>(
        &mut self,
        section: Section,
    ) -> &mut [T] {
        <[T]>::mut_from_bytes(self.section(section)).unwrap_or_default()
    }

    /// The actions.
    pub fn actions(&mut self) -> &mut [ActionEntry] {
        self.table(Section::Actions)
    }

    /// The regions.
    pub fn regions(&mut self) -> &mut [Region] {
        self.table(Section::Regions)
    }

    /// The segments.
    pub fn segments(&mut self) -> &mut [Segment] {
        self.table(Section::Segments)
    }

    /// The tensors.
    pub fn tensors(&mut self) -> &mut [TensorEntry] {
        self.table(Section::Tensors)
    }

    /// The first piece lies at `from`; false if there is none.
    pub fn move_tensor(&mut self, from: u64, to: u64) -> bool {
        let mut pieces = self.table::<PieceEntry>(Section::Pieces).iter_mut();
        let piece = pieces.find(|piece| piece.va.get() == from);
        piece.map(|piece| piece.va.set(to)).is_some()
    }

    /// An opcode's last action.
    pub fn last(&mut self, opcode: Opcode) -> Option<&mut ActionEntry> {
        let mut actions = self.actions().iter_mut();
        actions.rfind(|entry| entry.op == opcode.code())
    }

    /// Adds to the last segment, which counts them.
    pub fn append(&mut self, entries: &[ActionEntry]) {
        self.section(Section::Actions).extend(entries.as_bytes());
        if let Some(segment) = self.segments().last_mut() {
            segment
                .actions
                .set(segment.actions.get() + entries.len() as u32);
        }
    }
}

/// An action entry.
pub fn action(opcode: Opcode, a: u8, b: u16, c: u32, d: u64) -> ActionEntry {
    ActionEntry {
        op: opcode.code(),
        a,
        b: b.into(),
        c: c.into(),
        d: d.into(),
    }
}
