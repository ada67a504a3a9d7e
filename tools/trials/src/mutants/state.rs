// SPDX-License-Identifier: MIT OR Apache-2.0
//! One more state, wrong in one point.

use gpureplay_format::layout::{ActionEntry, AxisEntry, PieceEntry, TENSOR_EXTERNAL, TensorEntry};
use gpureplay_format::{
    Access, ElementType, MAX_RANK, Opcode, RegionKind, Section, SegmentKind, TensorKind,
};
use zerocopy::IntoBytes;

use super::Mutant;
use super::tables::{HIGH, region};
use crate::parts::{Parts, action};

use Opcode::{BindInput, BindOutput, Fill, Submit};

/// Elements of a state, a byte each.
const ELEMENTS: u32 = 256;

fn tensor(parts: &mut Parts, name: &str, kind: TensorKind, va: u64) -> u32 {
    let entries = |parts: &mut Parts, section, size| (parts.section(section).len() / size) as u32;
    let strings = parts.section(Section::Strings);
    let text = strings.len() as u32;
    strings.extend(name.as_bytes());
    strings.push(0);
    let first_piece = entries(parts, Section::Pieces, size_of::<PieceEntry>());
    let first_axis = entries(parts, Section::Axes, size_of::<AxisEntry>());
    let index = parts.tensors().len() as u32;
    let mut shape = [0; MAX_RANK];
    shape[0] = ELEMENTS;
    let entry = TensorEntry {
        name: text.into(),
        kind: kind.code(),
        element: ElementType::U8.code(),
        rank: 1,
        flags: 0,
        shape: shape.map(Into::into),
        first_piece: first_piece.into(),
        pieces: 1.into(),
    };
    let piece = PieceEntry {
        va: va.into(),
        element: 0.into(),
        first_axis: first_axis.into(),
        axes: 1.into(),
    };
    let axis = AxisEntry {
        extent: ELEMENTS.into(),
        element_stride: 1.into(),
        byte_stride: 1.into(),
    };
    parts.section(Section::Tensors).extend(entry.as_bytes());
    parts.section(Section::Pieces).extend(piece.as_bytes());
    parts.section(Section::Axes).extend(axis.as_bytes());
    index
}

/// Before action `at`, or at the segment's end.
pub(super) fn insert(parts: &mut Parts, segment: usize, at: u32, entry: ActionEntry) {
    let segments = parts.segments();
    let place = segments[segment].first_action.get() + at;
    segments[segment].actions = (segments[segment].actions.get() + 1).into();
    for later in &mut segments[segment + 1..] {
        later.first_action = (later.first_action.get() + 1).into();
    }
    let place = place as usize * size_of::<ActionEntry>();
    let actions = parts.section(Section::Actions);
    actions.splice(place..place, entry.as_bytes().iter().copied());
}

/// First and last run segment, and the first one's first submit.
fn runs(parts: &mut Parts) -> Option<(usize, usize, u32)> {
    let segments: Vec<(u32, u32, bool)> = parts
        .segments()
        .iter()
        .map(|segment| {
            let run = segment.kind == SegmentKind::Run.code();
            (segment.first_action.get(), segment.actions.get(), run)
        })
        .collect();
    let first = segments.iter().position(|(_, _, run)| *run)?;
    let last = segments.iter().rposition(|(_, _, run)| *run)?;
    let (start, count, _) = segments[first];
    let actions = &parts.actions()[start as usize..(start + count) as usize];
    let submit = actions.iter().position(|it| it.op == Submit.code())?;
    Some((first, last, submit as u32))
}

fn with_state(parts: &Parts) -> Option<(Parts, u32)> {
    let mut parts = parts.clone();
    let added = region(HIGH, 1, Access::READ_WRITE, RegionKind::Data);
    parts.section(Section::Regions).extend(added.as_bytes());
    let state = tensor(&mut parts, "state-of-mutants", TensorKind::State, HIGH);
    let (first, last, _) = runs(&mut parts)?;
    insert(&mut parts, first, 0, action(BindInput, 0, 0, state, 0));
    let count = parts.segments()[last].actions.get();
    insert(&mut parts, last, count, action(BindOutput, 0, 0, state, 0));
    Some((parts, state))
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let Some((good, state)) = with_state(parts) else {
        return Vec::new();
    };
    let Some((first, _, submit)) = runs(&mut good.clone()) else {
        return Vec::new();
    };
    let changed = |change: &dyn Fn(&mut Parts)| good.changed(change);
    let bound = action(BindInput, 0, 0, state, 0);
    let read = action(BindOutput, 0, 0, state, 0);
    let in_first = |at: u32, entry| changed(&|parts| insert(parts, first, at, entry));
    let unused = |opcode: Opcode| {
        changed(&|parts| {
            let mut actions = parts.actions().iter_mut();
            let found = actions.find(|it| it.op == opcode.code() && it.c == state);
            if let Some(entry) = found {
                *entry = action(Fill, 0, 0, 1, HIGH + 0x800);
            }
        })
    };
    let also = |kind: TensorKind, va: u64, opcode: Opcode| {
        changed(&|parts| {
            let other = tensor(parts, "other-of-mutants", kind, va);
            // An output is read after a job.
            let at = if opcode == BindOutput { submit + 1 } else { 0 };
            insert(parts, first, at, action(opcode, 0, 0, other, 0));
        })
    };
    let mut mutants = rows![
        "state without a value", "state-value" => changed(&|parts| {
            if let Some(entry) = parts.tensors().last_mut() {
                entry.flags = TENSOR_EXTERNAL;
            }
        });
        "state in the memory of an input", "state-apart" => also(TensorKind::Input, HIGH + 255, BindInput);
        "state in the memory of an output", "state-apart" => also(TensorKind::Output, HIGH, BindOutput);
        "run that fills a state", "state-kept" => in_first(0, action(Fill, 0, 0, 1, HIGH + 255));
        "run that fills a state and more", "state-kept" => in_first(0, action(Fill, 7, 0, 4096, HIGH));
        "state that no run is given", "state-bound" => unused(BindInput);
        "state that no run gives back", "state-bound" => unused(BindOutput);
        "state bound twice", "state-bound" => in_first(0, bound);
        "state bound after a job", "state-bound" => changed(&|parts| {
            insert(parts, first, submit + 1, bound);
            let start = parts.segments()[first].first_action.get() as usize;
            parts.actions()[start] = action(Fill, 0, 0, 1, HIGH + 0x800);
        });
        "state read before a job", "state-bound" => changed(&|parts| {
            if let Some(entry) = parts.last(BindOutput) {
                *entry = action(Fill, 0, 0, 1, HIGH + 0x800);
            }
            insert(parts, first, 1, read);
        });
        "state bound in set-up", "bound-tensor" => changed(&|parts| {
            let count = parts.segments()[0].actions.get();
            if first > 0 {
                insert(parts, 0, count, bound);
            }
        });
        "state outside of data", "tensor-region" => changed(&|parts| {
            let pieces = parts.section(Section::Pieces);
            let at = pieces.len() - size_of::<PieceEntry>();
            pieces[at..at + 8].copy_from_slice(&(HIGH + 4096 - 255).to_le_bytes());
        });
    ];
    if first == 0 {
        mutants.retain(|mutant| mutant.name != "state bound in set-up");
    }
    mutants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_with_a_state_keeps_all_rules() {
        for shipped in crate::shipped::chains().unwrap() {
            let parts = Parts::of(&shipped.bytes).unwrap();
            let (good, _) = with_state(&parts).unwrap();
            let mutant = Mutant::new("with a state", "", good.file());
            assert_eq!(super::super::refused_by(&mutant), None, "{}", shipped.name);
        }
    }
}
