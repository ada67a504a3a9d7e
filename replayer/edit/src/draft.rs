// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording whose tables are changed: all that is not touched stays as it is, byte for byte.

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{ActionEntry, Region, Segment};
use gpureplay_format::{Access, Encoding, Opcode, Recording as View, RegionKind, SegmentKind};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use crate::error::{EditError, Result};

/// The tables of a recording.
pub(crate) struct Draft<'v> {
    view: View<'v>,
    regions: Vec<Region>,
    segments: Vec<Segment>,
    actions: Vec<ActionEntry>,
    data: Vec<u8>,
}

fn broken() -> EditError {
    EditError::Size("the recording has no such action, or grows too large".into())
}

fn entry(opcode: Opcode, c: u32, d: u64) -> ActionEntry {
    ActionEntry {
        op: opcode.code(),
        a: if opcode == Opcode::Upload {
            Encoding::Raw.code()
        } else {
            0
        },
        b: U16::ZERO,
        c: U32::new(c),
        d: U64::new(d),
    }
}

impl<'v> Draft<'v> {
    /// A recording as it is.
    pub(crate) fn new(view: View<'v>) -> Self {
        Self {
            regions: view.regions().to_vec(),
            segments: view.segments().to_vec(),
            actions: view.action_entries().to_vec(),
            data: view.data().to_vec(),
            view,
        }
    }

    /// Adds a region behind all others.
    pub(crate) fn region(&mut self, va: u64, pages: u32, access: Access, kind: RegionKind) {
        self.regions.push(Region {
            va: U64::new(va),
            pages: U32::new(pages),
            access: access.0,
            kind: kind.code(),
            zero: U16::ZERO,
        });
    }

    /// Lets bytes be uploaded right before an action, and others right after it. Their place is at the end of all data, so nothing
    /// else moves.
    ///
    /// # Errors
    /// There is no such action, or the recording grows beyond what a table holds.
    pub(crate) fn upload_around(
        &mut self,
        action: u32,
        before: &[(u64, Vec<u8>)],
        after: &[(u64, Vec<u8>)],
    ) -> Result<()> {
        let segment = self.segments.iter().position(|segment| {
            let first = segment.first_action.get();
            (first..first.saturating_add(segment.actions.get())).contains(&action)
        });
        let segment = segment.ok_or_else(broken)?;
        // What comes later goes first: numbers of earlier actions stay.
        self.insert(segment, action.saturating_add(1), after)?;
        self.insert(segment, action, before)
    }

    /// Lets bytes be uploaded in set-up before anything else but settings: jobs of set-up may need them.
    ///
    /// # Errors
    /// There is no set-up, or the recording grows beyond what a table holds.
    pub(crate) fn upload_in_setup(&mut self, uploads: &[(u64, Vec<u8>)]) -> Result<()> {
        let setup = SegmentKind::Setup.code();
        let segment = self
            .segments
            .iter()
            .position(|segment| segment.kind == setup);
        let segment = segment.ok_or_else(broken)?;
        let entry = self.segments.get(segment).ok_or_else(broken)?;
        let first = entry.first_action.get();
        let actions = self.actions.iter().skip(first as usize);
        let settings = actions
            .take(entry.actions.get() as usize)
            .take_while(|action| action.op == Opcode::Write.code());
        let after = u32::try_from(settings.count()).map_err(|_| broken())?;
        let at = first.checked_add(after).ok_or_else(broken)?;
        self.insert(segment, at, uploads)
    }

    /// Puts uploads before an action of a segment, or at its end.
    fn insert(&mut self, segment: usize, action: u32, uploads: &[(u64, Vec<u8>)]) -> Result<()> {
        if uploads.is_empty() {
            return Ok(());
        }
        let cursor = self.cursor(segment, action).ok_or_else(broken)?;
        let mut new = Vec::new();
        for (address, bytes) in uploads {
            let length = u32::try_from(bytes.len()).map_err(|_| broken())?;
            new.push(entry(Opcode::Seek, 0, self.data.len() as u64));
            new.push(entry(Opcode::Upload, length, *address));
            self.data.extend_from_slice(bytes);
        }
        new.push(entry(Opcode::Seek, 0, cursor));
        let count = u32::try_from(new.len()).map_err(|_| broken())?;
        let at = action as usize;
        self.actions.splice(at..at, new);
        for (index, entry) in self.segments.iter_mut().enumerate() {
            let field = match index {
                _ if index == segment => &mut entry.actions,
                _ if index > segment => &mut entry.first_action,
                _ => continue,
            };
            *field = U32::new(field.get().checked_add(count).ok_or_else(broken)?);
        }
        Ok(())
    }

    /// Where the next upload of a segment takes its bytes from, before an action.
    fn cursor(&self, segment: usize, action: u32) -> Option<u64> {
        let segment = self.segments.get(segment)?;
        let first = segment.first_action.get();
        let mut offset = segment.data.get();
        let before = self.actions.get(first as usize..action as usize)?;
        for entry in before {
            match Opcode::from_code(entry.op.into())? {
                Opcode::Seek => offset = entry.d.get(),
                Opcode::Upload if entry.a == Encoding::Raw.code() => {
                    offset = offset.checked_add(entry.c.get().into())?
                }
                Opcode::Upload | Opcode::Launch => {
                    offset = offset.checked_add(entry.b.get().into())?
                }
                _ => {}
            }
        }
        Some(offset)
    }

    /// The file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let view = &self.view;
        assemble(
            view.header().platform(),
            &[
                view.identity().as_bytes(),
                self.regions.as_bytes(),
                self.segments.as_bytes(),
                self.actions.as_bytes(),
                view.tensors().as_bytes(),
                view.piece_entries().as_bytes(),
                view.axis_entries().as_bytes(),
                view.strings(),
                &self.data,
            ],
        )
    }
}
