// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording of which only segments and actions change: data stay where they are, and what is added comes behind them.

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{ActionEntry, Segment};
use gpureplay_format::{Encoding, Opcode, Recording};
use mali_descriptors::JobHeader;
use mali_descriptors::job::WRITTEN_BACK;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// Segments and actions of a recording.
pub(crate) struct Edit<'r, 'v> {
    recording: &'r Recording<'v>,
    segments: Vec<Segment>,
    actions: Vec<ActionEntry>,
    strings: Vec<u8>,
    data: Vec<u8>,
}

impl<'r, 'v> Edit<'r, 'v> {
    /// No segments yet.
    pub(crate) fn new(recording: &'r Recording<'v>) -> Self {
        Self {
            recording,
            segments: Vec::new(),
            actions: Vec::new(),
            strings: recording.strings().to_vec(),
            data: recording.data().to_vec(),
        }
    }

    /// Begins a segment; `of` says what it is otherwise.
    pub(crate) fn segment(&mut self, of: &Segment) {
        self.segments.push(Segment {
            first_action: U32::new(self.actions.len() as u32),
            actions: U32::ZERO,
            ..*of
        });
    }

    /// Gives the segment that was begun last another name.
    pub(crate) fn rename(&mut self, name: &str) {
        if let Some(segment) = self.segments.last_mut() {
            segment.name = U32::new(self.strings.len() as u32);
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
        }
    }

    /// Adds an action to the segment that was begun last.
    pub(crate) fn push(&mut self, entry: ActionEntry) {
        self.actions.push(entry);
        if let Some(segment) = self.segments.last_mut() {
            segment.actions += 1;
        }
    }

    /// Adds an action with an address only.
    pub(crate) fn action(&mut self, opcode: Opcode, d: u64) {
        self.push(ActionEntry {
            op: opcode.code(),
            a: 0,
            b: U16::ZERO,
            c: U32::ZERO,
            d: U64::new(d),
        });
    }

    /// Lets the words of headers be uploaded that say where in a chain a job is. `cursor`: where the segment's next upload takes its
    /// bytes from.
    pub(crate) fn headers(&mut self, headers: &[(u64, JobHeader)], cursor: u64) {
        if headers.is_empty() {
            return;
        }
        self.action(Opcode::Seek, self.data.len() as u64);
        for (address, header) in headers {
            let bytes = header.to_bytes();
            let words = bytes.get(WRITTEN_BACK as usize..).unwrap_or_default();
            self.data.extend_from_slice(words);
            self.push(ActionEntry {
                op: Opcode::Upload.code(),
                a: Encoding::Raw.code(),
                b: U16::ZERO,
                c: U32::new(words.len() as u32),
                d: U64::new(address + WRITTEN_BACK),
            });
        }
        self.action(Opcode::Seek, cursor);
    }

    /// The file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let recording = self.recording;
        assemble(
            recording.header().platform(),
            &[
                recording.identity().as_bytes(),
                recording.regions().as_bytes(),
                self.segments.as_bytes(),
                self.actions.as_bytes(),
                recording.tensors().as_bytes(),
                recording.piece_entries().as_bytes(),
                recording.axis_entries().as_bytes(),
                &self.strings,
                &self.data,
            ],
        )
    }
}
