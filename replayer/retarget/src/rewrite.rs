// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording with some of its tables changed. What is not changed stays byte for byte.

use std::collections::BTreeMap;

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{ActionEntry, IdentityCheck, Platform, Region, Segment};
use gpureplay_format::{ActionFault, Encoding, Opcode, Recording};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// Bytes that go to an address of GPU memory.
pub(crate) type Patch = (u64, Vec<u8>);

/// What changes.
pub(crate) struct Edits {
    pub(crate) platform: Platform,
    pub(crate) identity: Vec<IdentityCheck>,
    /// Regions behind all others.
    pub(crate) regions: Vec<Region>,
    /// Settings, by the index of the action that writes them: their new values, or `None` to leave them out.
    pub(crate) settings: BTreeMap<u32, Option<u32>>,
    /// What is uploaded after an action, by its index.
    pub(crate) patches: BTreeMap<u32, Vec<Patch>>,
}

/// Writes the recording anew.
///
/// # Errors
/// An action is malformed, which no verified recording has.
pub(crate) fn rewrite(recording: &Recording<'_>, edits: &Edits) -> Result<Vec<u8>, ActionFault> {
    let mut data = recording.data().to_vec();
    let mut actions: Vec<ActionEntry> = Vec::with_capacity(recording.action_entries().len());
    let mut segments: Vec<Segment> = Vec::with_capacity(recording.segments().len());
    for segment in recording.segments() {
        let first = actions.len() as u32;
        let mut cursor = recording.cursor(segment);
        let numbers = segment.first_action.get()..;
        for (number, entry) in numbers.zip(recording.segment_entries(segment)) {
            cursor.step(entry)?;
            match edits.settings.get(&number) {
                None => actions.push(*entry),
                Some(Some(value)) => actions.push(ActionEntry {
                    c: U32::new(*value),
                    ..*entry
                }),
                Some(None) => {}
            }
            let Some(patches) = edits.patches.get(&number) else {
                continue;
            };
            actions.push(seek(data.len() as u64));
            for (va, bytes) in patches {
                data.extend_from_slice(bytes);
                actions.push(ActionEntry {
                    op: Opcode::Upload.code(),
                    a: Encoding::Raw.code(),
                    b: U16::ZERO,
                    c: U32::new(bytes.len() as u32),
                    d: U64::new(*va),
                });
            }
            actions.push(seek(cursor.offset()));
        }
        segments.push(Segment {
            first_action: U32::new(first),
            actions: U32::new(actions.len() as u32 - first),
            ..*segment
        });
    }
    let mut regions = recording.regions().to_vec();
    regions.extend_from_slice(&edits.regions);
    Ok(assemble(
        edits.platform,
        &[
            edits.identity.as_bytes(),
            regions.as_bytes(),
            segments.as_bytes(),
            actions.as_bytes(),
            recording.tensors().as_bytes(),
            recording.piece_entries().as_bytes(),
            recording.axis_entries().as_bytes(),
            recording.strings(),
            &data,
        ],
    ))
}

fn seek(offset: u64) -> ActionEntry {
    ActionEntry {
        op: Opcode::Seek.code(),
        a: 0,
        b: U16::ZERO,
        c: U32::ZERO,
        d: U64::new(offset),
    }
}
