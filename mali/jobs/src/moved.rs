// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves code, for drivers that place code themselves.
//!
//! A program counter has 24 bits: code moves by windows of 16 MiB and keeps its addresses' lowest 24 bits. Only
//! shaders' descriptors name code.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_format::encode::Draft;
use gpureplay_format::layout::{ActionEntry, Region};
use gpureplay_format::{Access, Opcode, Recording};
use mali_drive::Verified;
use mali_facts::walk::{Found, Visitor, walk_chain};
use mali_facts::{JobType, Layout, RendererState, clause_address, valhall::ShaderProgram};
use zerocopy::little_endian::{U32, U64};

use crate::link::LinkError;
use crate::link::linked::{sound, written};
use crate::patch::{Word, places};
use crate::walk::{check_only, profile, submissions};

/// Bytes that a program counter reaches.
pub const WINDOW: u64 = 1 << 24;

const SHADERS: [(&Layout, &str); 2] = [
    (RendererState::LAYOUT, "Shader"),
    (ShaderProgram::LAYOUT, "Binary"),
];

/// Moves code; `to` maps starts of windows to new starts.
///
/// # Errors
/// Chains break a rule, or something other than a shader's descriptor names moved code.
pub fn move_code(verified: &Verified<'_>, to: &BTreeMap<u64, u64>) -> Result<Vec<u8>, LinkError> {
    check_only(verified)?;
    let recording = verified.recording();
    let profile = profile(verified)?;
    let mut shaders = Shaders {
        recording,
        to,
        words: BTreeSet::new(),
        seen: false,
    };
    submissions(verified, |submission| {
        walk_chain(submission.memory, profile, submission.head, &mut shaders);
        Ok::<(), LinkError>(())
    })?;
    let patches = places(verified, &shaders.words)?;
    let mut draft = Draft::new(recording);
    draft.regions = regions(recording, to);
    for segment in recording.segments() {
        draft.segment(segment);
        for step in recording.steps(segment).flatten() {
            let va = step.entry.d.get();
            let fills = [Opcode::Upload, Opcode::Fill].contains(&step.opcode);
            let moved = moved(recording, to, va).filter(|_| fills);
            draft.push(ActionEntry {
                d: U64::new(moved.unwrap_or(va)),
                ..*step.entry
            });
            let patches = patches.get(&step.number).map_or(&[][..], Vec::as_slice);
            let uploads = draft.store(patches);
            draft.insert(&uploads, step.after);
        }
    }
    let bytes = draft.encode()?;
    sound(&written(&bytes)?)?;
    Ok(bytes)
}

fn moved(recording: &Recording<'_>, to: &BTreeMap<u64, u64>, va: u64) -> Option<u64> {
    let region = recording.region_of(va, 1)?;
    if !Access(region.access).contains(Access::EXECUTE) {
        return None;
    }
    let window = va & !(WINDOW - 1);
    Some(to.get(&window)? | va & (WINDOW - 1))
}

fn regions(recording: &Recording<'_>, to: &BTreeMap<u64, u64>) -> Vec<Region> {
    let page = u64::from(gpureplay_format::PAGE_SIZE);
    let mut regions = Vec::new();
    for region in recording.regions() {
        let mut va = region.va.get();
        while va < region.end() {
            let next = match moved(recording, to, va) {
                Some(_) => (va | (WINDOW - 1)).saturating_add(1).min(region.end()),
                None => region.end(),
            };
            regions.push(Region {
                va: U64::new(moved(recording, to, va).unwrap_or(va)),
                pages: U32::new(u32::try_from((next - va) / page).unwrap_or(u32::MAX)),
                ..*region
            });
            va = next;
        }
    }
    regions.sort_by_key(|region| region.va.get());
    regions
}

struct Shaders<'a> {
    recording: &'a Recording<'a>,
    to: &'a BTreeMap<u64, u64>,
    words: BTreeSet<Word>,
    seen: bool,
}

impl Visitor for Shaders<'_> {
    fn wants_more(&self) -> bool {
        !self.seen
    }

    fn job(&mut self, _: u64, _: Option<JobType>) {
        self.seen = false;
    }

    fn descriptor(&mut self, found: &Found<'_>) {
        let mut shaders = SHADERS.iter();
        let Some((layout, field)) = shaders.find(|(it, _)| it.name == found.layout.name) else {
            return;
        };
        self.seen = true;
        let Some(offset) = layout.offset_of(field) else {
            return;
        };
        let words = found.words.get(offset as usize / 4..);
        let Some([low, high, ..]) = words else {
            return;
        };
        let old = u64::from(*low) | u64::from(*high) << 32;
        let code = clause_address(old);
        if let Some(new) = moved(self.recording, self.to, code) {
            let new = new | old & !clause_address(u64::MAX);
            let at = found.address.saturating_add(offset);
            self.words
                .insert((at, old.to_le_bytes().into(), new.to_le_bytes().into()));
        }
    }
}
