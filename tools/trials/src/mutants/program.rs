// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong programs.

use gpureplay_format::layout::{ActionEntry, AxisEntry, PieceEntry, Segment, TensorEntry};
use gpureplay_format::{Access, ElementType, Opcode, RegionKind, Section, TensorKind};

use zerocopy::IntoBytes;

use super::Mutant;
use super::state::insert;
use super::tables::{HIGH, region, va_of};
use crate::parts::{Parts, action};

use Opcode::{BindInput, BindOutput, Fill, Launch, Rearm, Seek, Submit, Upload, Write};

/// JS_CONFIG as drivers write it: caches are cleaned and emptied before and after.
const CONFIG: u16 = 0x3300;

/// Tensor at many places: one copy moves 70 GiB.
fn many_places(parts: &mut Parts) {
    const COUNT: u32 = 70;
    let added = region(HIGH, 1 << 18, Access::READ_WRITE, RegionKind::Data);
    parts.section(Section::Regions).extend(added.as_bytes());
    let entries = |parts: &mut Parts, section, size| parts.section(section).len() / size;
    let first_piece = entries(parts, Section::Pieces, size_of::<PieceEntry>()) as u32;
    let first_axis = entries(parts, Section::Axes, size_of::<AxisEntry>()) as u32;
    let index = parts.tensors().len() as u32;
    let mut tensor = parts.tensors()[0];
    tensor.kind = TensorKind::Intermediate.code();
    tensor.element = ElementType::U8.code();
    tensor.flags = 0;
    tensor.rank = 1;
    tensor.shape = [1 << 30, 0, 0, 0, 0, 0].map(Into::into);
    tensor.first_piece = first_piece.into();
    tensor.pieces = COUNT.into();
    parts.section(Section::Tensors).extend(tensor.as_bytes());
    for number in 0..COUNT {
        let piece = PieceEntry {
            va: HIGH.into(),
            element: 0.into(),
            first_axis: (first_axis + number).into(),
            axes: 1.into(),
        };
        let axis = AxisEntry {
            extent: (1 << 30).into(),
            element_stride: 1.into(),
            byte_stride: 1.into(),
        };
        parts.section(Section::Pieces).extend(piece.as_bytes());
        parts.section(Section::Axes).extend(axis.as_bytes());
    }
    parts.append(&[action(BindOutput, 0, 0, index, 0)]);
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let changed = |change: &dyn Fn(&mut Parts)| parts.changed(change);
    let ending = |entries: &[ActionEntry]| changed(&|parts| parts.append(entries));
    // The first action is always a write.
    let first = |b: u16, c: u32| changed(&|p| p.actions()[0] = action(Write, 0, b, c, 0));
    let last = |opcode: Opcode, change: &dyn Fn(&mut ActionEntry)| {
        changed(&|parts| {
            if let Some(entry) = parts.last(opcode) {
                change(entry);
            }
        })
    };
    let segment = |change: &dyn Fn(&mut [Segment])| changed(&|parts| change(parts.segments()));
    let chain = parts.clone().last(Submit).map_or(0, |entry| entry.d.get());
    let mut tensors = parts.clone();
    let is_input = |entry: &TensorEntry| entry.kind == TensorKind::Input.code();
    let is_state = |entry: &TensorEntry| entry.kind == TensorKind::State.code();
    let keeps_states = tensors.tensors().iter().any(is_state);
    let first_input = (0..)
        .zip(tensors.tensors())
        .find(|(_, entry)| is_input(entry));
    let first_input = first_input.map_or(0, |(index, _)| index);
    let [descriptors, data, code, scratch] = [
        RegionKind::Descriptors,
        RegionKind::Data,
        RegionKind::Code,
        RegionKind::Scratch,
    ]
    .map(|kind| va_of(parts, kind));
    let nowhere = 0x7000_0000_0000;
    let again = [
        action(Rearm, 0, 0, 0, chain),
        action(Submit, 1, CONFIG, 60_000_000, chain),
    ];
    // Set-up is the first segment.
    let in_setup = |entry: ActionEntry| {
        changed(&|parts| {
            let end = parts.segments()[0].actions.get();
            insert(parts, 0, end, entry);
        })
    };
    let block = |length: u32, bytes: &[u8]| packed(parts, length, bytes);
    rows![
        "foreign register: GPU command", "register-write" => first(0x30, 1);
        "foreign register: doorbell", "register-write" => first(0x18e0, 1);
        "foreign register: interrupt mask", "register-write" => first(0x1008, 0);
        "foreign register: power", "register-write" => first(0x180, 1);
        "foreign register: counter dump", "register-write" => first(0x60, 0x1000);
        "foreign register: outside", "register-write" => first(0x7ffc, 1);
        "forged root of page tables", "register-write" => first(0x2400, 0x1000);
        "forged command of the MMU", "register-write" => first(0x2418, 1);
        "setting with forbidden bits", "register-write" => first(0xf00, 0x8000_0000);
        "tensor in more places than may be moved", "total-bytes" => changed(&many_places);
        // Only the G71 needs forced coherency.
        "bits that drivers set on another GPU only", "register-write" => first(0xf00, 0xc);
        "power of core stacks by hand", "register-write" => first(0xf00, 1 << 8);
        "foreign register: between two", "register-write" => first(0xf05, 1);
        "setting after power-up", "register-write-order" => in_setup(action(Write, 0, 0xf04, 1, 0));
        "setting during a run", "register-write-order" => ending(&[action(Write, 0, 0xf04, 1, 0)]);
        "endless job", "bounded-wait" => last(Submit, &|entry| entry.c = u32::MAX.into());
        "job without a bound", "bounded-wait" => last(Submit, &|entry| entry.c = 0.into());
        "hours in total", "total-time" => ending(&again.repeat(61));
        "unknown action", "action-form" => last(Fill, &|entry| entry.op = 99);
        "operand that is not used", "action-form" => last(Rearm, &|entry| entry.c = 1.into());
        "launch on a GPU that takes chains", "action-form" => ending(&[action(Launch, 0, 0, 1000, 0)]);
        "unknown encoding", "action-form" => last(Upload, &|entry| entry.a = 7);
        "bytes from outside the file", "upload-data" => ending(&[action(Seek, 0, 0, 0, 1 << 40)]);
        "decompression bomb", "upload-data" => block(0x1000_0000, &[0x1f, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]);
        "block that ends early", "upload-data" => block(64, &[0x10, 1]);
        "block that reaches before its history", "upload-data" => block(9, &[0x10, 1, 0xff, 0x7f, 0x40, 0, 0, 0, 0]);
        "data of all uploads gone", "upload-data" => changed(&|p| p.section(Section::Data).clear());
        "upload that decodes to less", "upload-data" => last(Upload, &|entry| {
            if entry.a == 1 {
                entry.c = (entry.c.get() + 1).into();
            } else {
                entry.c = u32::MAX.into();
            }
        });
        "fill outside all regions", "upload-region" => ending(&[action(Fill, 1, 0, 16, nowhere)]);
        "fill across the end of a region", "upload-region" => ending(&[action(Fill, 1, 0, u32::MAX, data)]);
        "fill into scratch", "upload-region" => ending(&[action(Fill, 1, 0, 16, scratch)]);
        "code changed during a run", "upload-region" => ending(&[action(Fill, 1, 0, 16, code)]);
        "fill of nothing", "upload-region" => ending(&[action(Fill, 1, 0, 0, data)]);
        "job header in data", "job-header" => ending(&[action(Rearm, 0, 0, 0, data)]);
        "job header in no region", "job-header" => ending(&[action(Rearm, 0, 0, 0, nowhere)]);
        "job header off its boundary", "job-header" => ending(&[action(Rearm, 0, 0, 0, chain + 8)]);
        "fourth job slot", "job-configuration" => last(Submit, &|entry| entry.a = 3);
        "address space of somebody else", "job-configuration" => last(Submit, &|entry| entry.b = (entry.b.get() | 5).into());
        "job status not written back", "job-configuration" => last(Submit, &|entry| entry.b = (entry.b.get() | 0x8000).into());
        "chain submitted again as it is", "job-restored" => ending(&[action(Submit, 1, CONFIG, 1000, chain)]);
        "another job made ready than the first", "job-restored" => ending(&[
            action(Rearm, 0, 0, 0, descriptors + 64),
            action(Submit, 1, CONFIG, 1000, descriptors),
        ]);
        "half a header written", "job-restored" => ending(&[
            action(Fill, 0, 0, 15, descriptors),
            action(Submit, 1, CONFIG, 1000, descriptors),
        ]);
        "job made ready for nothing", "job-submitted" => ending(&[action(Rearm, 0, 0, 0, chain)]);
        "tensor that does not exist", "bound-tensor" => ending(&[action(BindInput, 0, 0, 9999, 0)]);
        "input bound in set-up", "bound-tensor" => in_setup(action(BindInput, 0, 0, first_input, 0));
        "input read back", "bound-tensor" => ending(&[action(BindOutput, 0, 0, first_input, 0)]);
        // The last tensor read is then a state, with its own rules.
        "output overwritten", if keeps_states { "state-bound" } else { "bound-tensor" } => last(BindOutput, &|entry| entry.op = BindInput.code());
        "actions of two segments", "segment-table" => segment(&|s| s[1].first_action = 0.into());
        "action of no segment", "segment-table" => changed(&|p| p.section(Section::Actions).extend([0; 16]));
        "actions from outside the file", "segment-table" => segment(&|s| s[1].actions = u32::MAX.into());
        "reserved field of a segment", "segment-table" => segment(&|s| s[1].zero[2] = 1);
        "segment without a name", "segment-table" => segment(&|s| s[1].name = u32::MAX.into());
        "unknown kind of segment", "segment-table" => segment(&|s| s[1].kind = 7);
        "set-up after a run", "segment-order" => changed(&|parts| {
            let count = parts.actions().len() as u32;
            let mut late = parts.segments()[0];
            late.first_action = count.into();
            late.actions = 0.into();
            parts.section(Section::Segments).extend(late.as_bytes());
        });
        "nothing that runs", "segment-order" => changed(&|parts| {
            let actions = parts.segments()[0].actions.get() as usize;
            parts
                .section(Section::Segments)
                .truncate(size_of::<Segment>());
            parts
                .section(Section::Actions)
                .truncate(actions * size_of::<ActionEntry>());
        });
        "gigabytes upon gigabytes", "total-bytes" => changed(&|parts| {
            if let Some(&last) = parts.regions().last() {
                let mut room = last;
                room.kind = RegionKind::Data.code();
                room.access = 3;
                let va = last.va.get() + (u64::from(last.pages.get()) << 12);
                room.va = va.into();
                room.pages = (1 << 19).into();
                parts.section(Section::Regions).extend(room.as_bytes());
                parts.append(&vec![action(Fill, 0, 0, 1 << 31, va); 33]);
            }
        });
    ]
}

/// Claims to decode to `length` bytes.
fn packed(parts: &Parts, length: u32, block: &[u8]) -> Vec<u8> {
    let mut parts = parts.clone();
    let va = va_of(&parts, RegionKind::Data);
    let at = parts.section(Section::Data).len() as u64;
    parts.section(Section::Data).extend(block);
    let upload = action(Upload, 1, block.len() as u16, length, va);
    parts.append(&[action(Seek, 0, 0, 0, at), upload]);
    parts.file()
}
