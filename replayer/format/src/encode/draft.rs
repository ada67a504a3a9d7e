// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rewrites a recording; new data follow the old.

use alloc::vec::Vec;

use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use super::{EncodeError, assemble};
use crate::action::ActionFault;
use crate::codes::{Encoding, Opcode};
use crate::layout::{ActionEntry, IdentityCheck, Platform, Region, Segment};
use crate::view::Recording;

/// Action with its place.
#[derive(Clone, Copy, Debug)]
pub struct Step<'v> {
    /// Index in `actions`.
    pub number: u32,
    /// Action.
    pub entry: &'v ActionEntry,
    /// Opcode.
    pub opcode: Opcode,
    /// The next upload's offset in `data` before this action.
    pub before: u64,
    /// The next upload's offset in `data` after this action.
    pub after: u64,
}

impl<'v> Recording<'v> {
    /// Segment's actions, well formed if verified.
    pub fn steps(
        &self,
        segment: &Segment,
    ) -> impl Iterator<Item = Result<Step<'v>, ActionFault>> + use<'v> {
        let mut cursor = self.cursor(segment);
        let numbers = segment.first_action.get()..;
        let entries = numbers.zip(self.segment_entries(segment));
        entries.map(move |(number, entry)| {
            let before = cursor.offset();
            let (opcode, _) = cursor.step(entry)?;
            Ok(Step {
                number,
                entry,
                opcode,
                before,
                after: cursor.offset(),
            })
        })
    }
}

/// Add segments and actions in order; other tables are the old recording's.
#[derive(Clone, Debug)]
pub struct Draft<'v> {
    view: Recording<'v>,
    /// From the header.
    pub platform: Platform,
    /// What the replay's GPU must be.
    pub identity: Vec<IdentityCheck>,
    /// Ascending.
    pub regions: Vec<Region>,
    segments: Vec<Segment>,
    actions: Vec<ActionEntry>,
    strings: Vec<u8>,
    data: Vec<u8>,
    too_large: bool,
}

impl<'v> Draft<'v> {
    /// Starts without segments and actions.
    pub fn new(view: &Recording<'v>) -> Self {
        Self {
            view: *view,
            platform: view.header().platform(),
            identity: view.identity().to_vec(),
            regions: view.regions().to_vec(),
            segments: Vec::new(),
            actions: Vec::new(),
            strings: view.strings().to_vec(),
            data: view.data().to_vec(),
            too_large: false,
        }
    }

    /// Adds a segment; `of` gives name, kind, and start of the first upload.
    pub fn segment(&mut self, of: &Segment) {
        self.segments.push(Segment {
            first_action: U32::new(self.actions.len() as u32),
            actions: U32::ZERO,
            ..*of
        });
    }

    /// Renames the last segment.
    pub fn rename(&mut self, name: &str) {
        if let Some(segment) = self.segments.last_mut() {
            segment.name = U32::new(self.strings.len() as u32);
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
        }
    }

    /// Adds to the last segment.
    pub fn push(&mut self, entry: ActionEntry) {
        self.actions.push(entry);
        if let Some(segment) = self.segments.last_mut() {
            segment.actions += 1;
        }
    }

    /// Adds an action whose only operand is an address or an offset.
    pub fn action(&mut self, opcode: Opcode, d: u64) {
        self.push(entry(opcode, 0, 0, d));
    }

    /// Appends data; returns the actions that upload them.
    pub fn store<B: AsRef<[u8]>>(&mut self, uploads: &[(u64, B)]) -> Vec<ActionEntry> {
        let mut actions = Vec::new();
        if !uploads.is_empty() {
            actions.push(entry(Opcode::Seek, 0, 0, self.data.len() as u64));
        }
        for (address, bytes) in uploads {
            let bytes = bytes.as_ref();
            let length = u32::try_from(bytes.len()).unwrap_or_else(|_| {
                self.too_large = true;
                0
            });
            let raw = Encoding::Raw.code();
            actions.push(entry(Opcode::Upload, raw, length, *address));
            self.data.extend_from_slice(bytes);
        }
        actions
    }

    /// Adds uploads; the segment's next upload then starts at `cursor`.
    pub fn insert(&mut self, uploads: &[ActionEntry], cursor: u64) {
        if !uploads.is_empty() {
            uploads.iter().for_each(|entry| self.push(*entry));
            self.action(Opcode::Seek, cursor);
        }
    }

    /// Adds `entry` with other words; `cursor` as in `insert`.
    pub fn launch(&mut self, entry: ActionEntry, words: &[u8], cursor: u64) {
        self.action(Opcode::Seek, self.data.len() as u64);
        let b = U16::new(u16::try_from(words.len()).unwrap_or_else(|_| {
            self.too_large = true;
            0
        }));
        self.push(ActionEntry { b, ..entry });
        self.data.extend_from_slice(words);
        self.action(Opcode::Seek, cursor);
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// A table or an upload has more than 2^32 entries.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let tables = [self.actions.len(), self.strings.len()];
        if self.too_large || tables.iter().any(|&len| u32::try_from(len).is_err()) {
            return Err(EncodeError::TooLarge);
        }
        let [_, _, _, _, tensors, pieces, axes, _, _] = self.view.sections();
        let sections = [
            self.identity.as_bytes(),
            self.regions.as_bytes(),
            self.segments.as_bytes(),
            self.actions.as_bytes(),
            tensors,
            pieces,
            axes,
            &self.strings,
            &self.data,
        ];
        Ok(assemble(self.platform, &sections))
    }
}

fn entry(opcode: Opcode, a: u8, c: u32, d: u64) -> ActionEntry {
    ActionEntry {
        op: opcode.code(),
        a,
        b: U16::ZERO,
        c: U32::new(c),
        d: U64::new(d),
    }
}
