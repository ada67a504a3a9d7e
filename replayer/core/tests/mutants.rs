// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that are wrong in one point, each refused by the rule that it breaks.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;

use gpureplay_core::{Limits, Rule, verify};
use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{SECTIONS, Segment, TensorEntry};
use gpureplay_format::{
    Access, Axis, Builder, ElementType, Piece, Recording, RegionKind, Section, SegmentKind, Tensor,
    TensorId, TensorKind,
};
use support::{COUNT, DATA, DESCRIPTORS, INPUT, OUTPUT, PRODUCT, builder, run, set_up};

/// The rule that refuses a file; `None` when it is accepted.
fn refused_by(file: &[u8]) -> Option<Rule> {
    verify(Recording::parse(file).unwrap(), &Limits::DEFAULT)
        .err()
        .map(|violation| violation.rule)
}

/// The usual recording with something added at its start (regions, tensors, identity).
fn with(spoil: impl Fn(&mut Builder)) -> Vec<u8> {
    let mut builder = builder();
    spoil(&mut builder);
    set_up(&mut builder);
    run(&mut builder);
    builder.finish().unwrap()
}

/// The usual recording with something added at the end of set-up.
fn in_set_up(spoil: impl Fn(&mut Builder)) -> Vec<u8> {
    let mut builder = builder();
    set_up(&mut builder);
    spoil(&mut builder);
    run(&mut builder);
    builder.finish().unwrap()
}

/// The usual recording with something added at the end of the run.
fn in_run(spoil: impl Fn(&mut Builder)) -> Vec<u8> {
    let mut builder = builder();
    set_up(&mut builder);
    run(&mut builder);
    spoil(&mut builder);
    builder.finish().unwrap()
}

/// The usual recording with the bytes of one section changed and all checksums right.
fn patched(section: Section, patch: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    use gpureplay_format::layout::{Header, SectionEntry};
    use zerocopy::FromBytes;
    let file = support::recording();
    let (table, _) =
        <[SectionEntry; SECTIONS]>::ref_from_prefix(&file[size_of::<Header>()..]).unwrap();
    let mut sections: Vec<Vec<u8>> = table
        .iter()
        .map(|entry| {
            let start = entry.offset.get() as usize;
            file[start..start + entry.length.get() as usize].to_vec()
        })
        .collect();
    patch(&mut sections[section.code() as usize - 1]);
    let sections: Vec<&[u8]> = sections.iter().map(Vec::as_slice).collect();
    assemble(PRODUCT, 0, &sections.try_into().unwrap())
}

fn tensor_at(va: u64, axes: Vec<Axis>) -> Tensor {
    Tensor {
        pieces: vec![Piece {
            va,
            element: 0,
            axes,
        }],
        ..Tensor::dense("z", TensorKind::Weight, ElementType::F32, &[4, 4], va)
    }
}

fn axis(extent: u32, element_stride: u32, byte_stride: u32) -> Axis {
    Axis {
        extent,
        element_stride,
        byte_stride,
    }
}

#[test]
fn the_usual_recording_is_accepted() {
    assert_eq!(refused_by(&support::recording()), None);
    assert_eq!(refused_by(&patched(Section::Data, |_| {})), None);
}

#[test]
fn every_mutant_is_refused_by_its_rule() {
    let read_write = Access::READ_WRITE;
    let tile = |va, axes: &[Axis]| {
        let axes = axes.to_vec();
        with(move |b| {
            b.tensor(tensor_at(va, axes.clone()));
        })
    };
    let offset = std::mem::offset_of!(TensorEntry, element);
    let segment = size_of::<Segment>();
    #[rustfmt::skip]
    let mutants: Vec<(&str, Rule, Vec<u8>)> = vec![
        ("region off a page", Rule::RegionShape, with(|b| b.region(0x240_0800, 1, read_write, RegionKind::Data))),
        ("region without pages", Rule::RegionShape, with(|b| b.region(0x240_0000, 0, read_write, RegionKind::Data))),
        ("region field not zero", Rule::RegionShape, patched(Section::Regions, |s| s[14] = 1)),
        ("region beyond 48 bits", Rule::RegionRange, with(|b| b.region(0xffff_ffff_f000, 2, read_write, RegionKind::Data))),
        ("region that wraps", Rule::RegionRange, with(|b| b.region(u64::MAX - 0xfff, 1, read_write, RegionKind::Data))),
        ("regions overlap", Rule::RegionsDisjoint, patched(Section::Regions, |s| s[9] = 0x02)),
        ("regions swapped", Rule::RegionsDisjoint, patched(Section::Regions, |s| s.rotate_left(16))),
        ("writable code", Rule::WriteXorExecute, with(|b| b.region(0x240_0000, 1, Access(7), RegionKind::Code))),
        ("executable data", Rule::RegionKind, with(|b| b.region(0x240_0000, 1, Access::READ_EXECUTE, RegionKind::Data))),
        ("code that cannot run", Rule::RegionKind, with(|b| b.region(0x240_0000, 1, Access::READ, RegionKind::Code))),
        ("unreadable data", Rule::RegionKind, with(|b| b.region(0x240_0000, 1, Access::WRITE, RegionKind::Data))),
        ("unknown access bit", Rule::RegionKind, with(|b| b.region(0x240_0000, 1, Access(0xb), RegionKind::Data))),
        ("unknown region kind", Rule::RegionKind, patched(Section::Regions, |s| s[13] = 9)),
        ("a terabyte", Rule::MemoryLimit, with(|b| b.region(0x1_0000_0000, 1 << 28, read_write, RegionKind::Data))),
        ("identity of a counter", Rule::IdentityRegister, with(|b| b.identity(0x38, 1, 1))),
        ("identity of a job slot", Rule::IdentityRegister, with(|b| b.identity(0x18e0, 1, 1))),
        ("identity off a word", Rule::IdentityRegister, with(|b| b.identity(2, 1, 1))),
        ("no identity", Rule::IdentityProduct, patched(Section::Identity, Vec::clear)),
        ("another product than the header's", Rule::IdentityProduct, patched(Section::Identity, |s| s[11] = 0x60)),
        ("product half compared", Rule::IdentityProduct, patched(Section::Identity, |s| s[7] = 0x0f)),
        ("unknown element type", Rule::TensorShape, patched(Section::Tensors, |s| s[offset] = 99)),
        ("unknown tensor kind", Rule::TensorShape, patched(Section::Tensors, |s| s[4] = 99)),
        ("unknown tensor flag", Rule::TensorShape, patched(Section::Tensors, |s| s[7] = 0x80)),
        ("rank of seven", Rule::TensorShape, patched(Section::Tensors, |s| s[6] = 7)),
        ("extent of zero", Rule::TensorShape, patched(Section::Tensors, |s| s[8..12].fill(0))),
        ("shape that overflows", Rule::TensorShape, patched(Section::Tensors, |s| s[8..12].fill(0xff))),
        ("name outside the strings", Rule::TensorShape, patched(Section::Tensors, |s| s[..4].fill(0xff))),
        ("piece of two tensors", Rule::TensorTables, patched(Section::Tensors, |s| s[48 + 32] = 0)),
        ("pieces outside the table", Rule::TensorTables, patched(Section::Tensors, |s| s[36] = 9)),
        ("piece left over", Rule::TensorTables, patched(Section::Pieces, |s| s.extend([0; 24]))),
        ("axes outside the table", Rule::TensorTables, patched(Section::Pieces, |s| s[16] = 7)),
        ("too few elements", Rule::TensorElements, tile(DATA, &[axis(4, 4, 16), axis(3, 1, 4)])),
        ("elements beyond the last", Rule::TensorElements, tile(DATA, &[axis(4, 5, 20), axis(4, 1, 4)])),
        ("rows that overlap", Rule::TensorOverlap, tile(DATA, &[axis(4, 4, 12), axis(4, 1, 4)])),
        ("a loop in place", Rule::TensorOverlap, tile(DATA, &[axis(u32::MAX, 0, 0), axis(16, 1, 4)])),
        ("misaligned elements", Rule::TensorRegion, tile(DATA + 2, &[axis(4, 4, 16), axis(4, 1, 4)])),
        ("misaligned rows", Rule::TensorRegion, tile(DATA, &[axis(4, 4, 18), axis(4, 1, 4)])),
        ("tensor over a job chain", Rule::TensorRegion, tile(DESCRIPTORS, &[axis(16, 1, 4)])),
        ("tensor over code", Rule::TensorRegion, tile(0x220_0000, &[axis(16, 1, 4)])),
        ("tensor beyond its region", Rule::TensorRegion, tile(DATA + 0xfe0, &[axis(16, 1, 4)])),
        ("tensor far beyond", Rule::TensorRegion, tile(DATA, &[axis(4, 4, 0xffff_fffc), axis(4, 1, 4)])),
        ("segment without a name", Rule::SegmentTable, patched(Section::Segments, |s| s[..4].fill(0xff))),
        ("unknown segment kind", Rule::SegmentTable, patched(Section::Segments, |s| s[4] = 9)),
        ("actions twice", Rule::SegmentTable, patched(Section::Segments, |s| s[segment + 8] = 0)),
        ("actions beyond the table", Rule::SegmentTable, patched(Section::Segments, |s| s[segment + 12] = 99)),
        ("an action left over", Rule::SegmentTable, patched(Section::Actions, |s| s.extend([0; 16]))),
        ("submits miscounted", Rule::SegmentTable, patched(Section::Segments, |s| s[segment + 24] = 9)),
        ("jobs miscounted", Rule::SegmentTable, patched(Section::Segments, |s| s[segment + 28] = 9)),
        ("run before set-up", Rule::SegmentOrder, in_run(|b| b.segment("late", SegmentKind::Setup))),
        ("nothing runs", Rule::SegmentOrder, only_set_up()),
        ("unknown opcode", Rule::ActionForm, patched(Section::Actions, |s| s[0] = 99)),
        ("operand where none is", Rule::ActionForm, patched(Section::Actions, |s| s[1] = 1)),
        ("unknown encoding", Rule::ActionForm, patched(Section::Actions, |s| s[17] = 7)),
        ("upload beyond the data", Rule::UploadData, in_set_up(|b| b.seek(1 << 40))),
        ("data of the upload gone", Rule::UploadData, patched(Section::Data, Vec::clear)),
        ("decompression bomb", Rule::UploadData, in_set_up(|b| b.upload_packed(DATA, 0x1000_0000, &[0x1f, 0, 1, 0, 0xff, 0xff, 0]))),
        ("block that ends early", Rule::UploadData, in_set_up(|b| b.upload_packed(DATA, 64, &[0x10, 1]))),
        ("block that reaches before its history", Rule::UploadData, in_set_up(|b| b.upload_packed(DATA, 9, &[0x10, 1, 0xff, 0x7f, 0x40, 0, 0, 0, 0]))),
        ("upload outside all regions", Rule::UploadRegion, in_set_up(|b| b.upload(0x700_0000, &[1; 16]))),
        ("upload over the end of a region", Rule::UploadRegion, in_set_up(|b| b.fill(DATA + 0xff0, 32, 1))),
        ("upload into scratch", Rule::UploadRegion, in_set_up(|b| b.upload(0x230_0000, &[1; 16]))),
        ("code that changes while running", Rule::UploadRegion, in_run(|b| b.upload(0x220_0000, &[1; 16]))),
        ("fill of nothing", Rule::UploadRegion, in_set_up(|b| b.fill(DATA, 0, 1))),
        ("page-table root", Rule::RegisterWrite, first_write(0x2400)),
        ("doorbell", Rule::RegisterWrite, first_write(0x18e0)),
        ("GPU command", Rule::RegisterWrite, first_write(0x30)),
        ("interrupt mask", Rule::RegisterWrite, first_write(0x1008)),
        ("counter dump address", Rule::RegisterWrite, first_write(0x60)),
        ("unknown register", Rule::RegisterWrite, first_write(0x3ffc)),
        ("register off a word", Rule::RegisterWrite, first_write(0xf05)),
        ("bits that drivers leave alone", Rule::RegisterWrite, patched(Section::Actions, |s| { s[2..4].copy_from_slice(&0xf00u16.to_le_bytes()); s[7] = 0xff; })),
        ("bit of another GPU's quirk", Rule::RegisterWrite, first_value(0xf00, 0xc)),
        ("clock gating of another GPU", Rule::RegisterWrite, first_value(0xf08, 1)),
        ("setting after power-up", Rule::RegisterWriteOrder, in_set_up(|b| b.write(0xf04, 1))),
        ("setting during a run", Rule::RegisterWriteOrder, in_run(|b| b.write(0xf04, 1))),
        ("poll of a write-only register", Rule::RegisterRead, in_run(|b| b.poll(0x30, 1, 1, 1))),
        ("poll of a fault address", Rule::RegisterRead, in_run(|b| b.expect(0x2420, 1, 1))),
        ("expectation of nothing", Rule::RegisterRead, in_run(|b| b.expect(0, 0, 0))),
        ("wait for the job line", Rule::InterruptBits, in_run(|b| b.wait_irq(0, 1, 1))),
        ("wait for no bits", Rule::InterruptBits, in_run(|b| b.wait_irq(2, 0, 1))),
        ("wait for a reset", Rule::InterruptBits, in_run(|b| b.wait_irq(2, 1 << 8, 1))),
        ("endless poll", Rule::BoundedWait, in_run(|b| b.poll(0, 1, 0, u32::MAX))),
        ("poll without time", Rule::BoundedWait, in_run(|b| b.poll(0, 1, 0, 0))),
        ("flush without bound", Rule::BoundedWait, in_run(|b| b.flush_caches(u32::MAX))),
        ("endless job", Rule::BoundedWait, in_run(|b| { b.rearm(DESCRIPTORS); b.submit(1, DESCRIPTORS, u32::MAX); })),
        ("minutes upon minutes", Rule::TotalTime, in_run(|b| (0..61).for_each(|_| b.poll(0, 1, 0, 60_000_000)))),
        ("bytes upon bytes", Rule::TotalBytes, with_large_region(|b| (0..70).for_each(|_| b.fill(0x1_0000_0000, 1 << 30, 0)))),
        ("job header off its boundary", Rule::JobHeader, in_run(|b| b.rearm(DESCRIPTORS + 8))),
        ("job chain in data", Rule::JobHeader, in_run(|b| b.rearm(DATA))),
        ("job chain nowhere", Rule::JobHeader, in_run(|b| b.rearm(0x700_0000))),
        ("fourth slot", Rule::JobConfiguration, in_run(|b| { b.rearm(DESCRIPTORS); b.submit(3, DESCRIPTORS, 1); })),
        ("no write-back of job status", Rule::JobConfiguration, in_run(|b| { b.rearm(DESCRIPTORS); b.submit_with(1, 0x8000, DESCRIPTORS, 1); })),
        ("chain submitted twice", Rule::JobRestored, in_run(|b| b.submit(1, DESCRIPTORS, 1))),
        ("another chain rearmed", Rule::JobRestored, in_run(|b| { b.rearm(DESCRIPTORS + 64); b.submit(1, DESCRIPTORS, 1); })),
        ("half a header uploaded", Rule::JobRestored, in_run(|b| { b.upload(DESCRIPTORS, &[0; 15]); b.submit(1, DESCRIPTORS, 1); })),
        ("rearmed for nothing", Rule::JobSubmitted, in_run(|b| b.rearm(DESCRIPTORS))),
        ("no such tensor", Rule::BoundTensor, in_run(|b| b.bind_input(TensorId(9)))),
        ("input read back", Rule::BoundTensor, in_run(|b| b.bind_output(TensorId(0)))),
        ("output written", Rule::BoundTensor, in_run(|b| b.bind_input(TensorId(1)))),
        ("input in set-up", Rule::BoundTensor, in_set_up(|b| b.bind_input(TensorId(0)))),
    ];
    let mut broken = BTreeSet::new();
    let mut survivors = Vec::new();
    for (name, rule, file) in &mutants {
        let found = refused_by(file);
        if found != Some(*rule) {
            survivors.push(format!("{name}: {rule:?} expected, {found:?} found"));
        }
        broken.insert(*rule);
    }
    assert!(survivors.is_empty(), "{survivors:#?}");
    let untested: Vec<_> = Rule::ALL
        .iter()
        .filter(|rule| !broken.contains(rule))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
    println!(
        "{} mutants of {} rules, all refused",
        mutants.len(),
        Rule::ALL.len()
    );
    assert_eq!((INPUT, OUTPUT, COUNT), (DATA, DATA + 0x800, 16));
}

/// The usual recording whose set-up starts with a write to a register.
fn first_write(register: u16) -> Vec<u8> {
    patched(Section::Actions, move |section| {
        section[2..4].copy_from_slice(&register.to_le_bytes());
    })
}

/// A recording whose first action writes a value to a register.
fn first_value(register: u16, value: u32) -> Vec<u8> {
    patched(Section::Actions, move |section| {
        section[2..4].copy_from_slice(&register.to_le_bytes());
        section[4..8].copy_from_slice(&value.to_le_bytes());
    })
}

/// A recording without a run segment.
fn only_set_up() -> Vec<u8> {
    let mut builder = builder();
    set_up(&mut builder);
    builder.finish().unwrap()
}

fn with_large_region(spoil: impl Fn(&mut Builder)) -> Vec<u8> {
    let mut builder = builder();
    builder.region(0x1_0000_0000, 1 << 18, Access::READ_WRITE, RegionKind::Data);
    set_up(&mut builder);
    run(&mut builder);
    spoil(&mut builder);
    builder.finish().unwrap()
}
