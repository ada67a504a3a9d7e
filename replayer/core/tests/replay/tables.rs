// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each verifier condition: one bad field, and the edge.

mod tensors;

use crate::support::{self, DATA, DESCRIPTORS, PRODUCT};
use gpureplay_core::{Limits, Rule};
use gpureplay_format::layout::Platform;
use gpureplay_format::{Access, Builder, Opcode, Recording, Section, SegmentKind, encode};
use mali_drive::verify;

const CODE: u64 = 0x220_0000;
const SCRATCH: u64 = 0x230_0000;
const PAGE: u64 = 4096;

fn broken(file: &[u8]) -> Option<Rule> {
    let recording = Recording::parse(file).unwrap();
    let verified = verify(&recording, &Limits::DEFAULT);
    verified.err().map(|violation| violation.rule)
}

fn changed<const N: usize>(section: Section, at: usize, bytes: [u8; N]) -> Option<Rule> {
    let file = support::recording();
    let recording = Recording::parse(&file).unwrap();
    let mut sections = recording.sections();
    let index = section.code() as usize - 1;
    let mut own = sections[index].to_vec();
    own[at..at + N].copy_from_slice(&bytes);
    sections[index] = &own;
    broken(&encode::assemble(recording.header().platform(), &sections))
}

fn longer(section: Section, size: usize) -> Option<Rule> {
    let file = support::recording();
    let recording = Recording::parse(&file).unwrap();
    let mut sections = recording.sections();
    let index = section.code() as usize - 1;
    let own = [sections[index], &vec![0; size]].concat();
    sections[index] = &own;
    broken(&encode::assemble(recording.header().platform(), &sections))
}

fn program(make: impl FnOnce(&mut Builder)) -> Option<Rule> {
    let mut builder = support::builder();
    make(&mut builder);
    broken(&builder.finish().unwrap())
}

fn segment(kind: SegmentKind, make: impl FnOnce(&mut Builder)) -> Option<Rule> {
    program(|builder| {
        if kind == SegmentKind::Finish {
            builder.segment("run", SegmentKind::Run);
        }
        builder.segment("this", kind);
        make(builder);
        if kind == SegmentKind::Setup {
            builder.segment("run", SegmentKind::Run);
        }
    })
}

fn run(make: impl FnOnce(&mut Builder)) -> Option<Rule> {
    segment(SegmentKind::Run, make)
}

#[test]
fn regions() {
    let region =
        |index: usize, at: usize, value: u8| changed(Section::Regions, 16 * index + at, [value]);
    assert_eq!(region(0, 0, 0), None);
    for (at, value) in [(0, 1), (1, 8), (8, 0), (14, 1), (15, 1)] {
        assert_eq!(region(0, at, value), Some(Rule::RegionShape), "{at}");
    }
    let pages = |count: u32| changed(Section::Regions, 8, count.to_le_bytes());
    let between = ((DATA - DESCRIPTORS) / PAGE) as u32;
    assert_eq!(pages(between), None);
    assert_eq!(pages(between + 1), Some(Rule::RegionsDisjoint));
    let last = |va: u64| changed(Section::Regions, 3 * 16, va.to_le_bytes());
    assert_eq!(last((1 << 48) - PAGE), None);
    assert_eq!(last(1 << 48), Some(Rule::RegionRange));
    assert_eq!(last(u64::MAX - PAGE + 1), Some(Rule::RegionRange));
    assert_eq!(last(CODE), Some(Rule::RegionsDisjoint));
    assert_eq!(last(CODE + PAGE), None);
    for (access, expected) in [
        (Access::READ_WRITE, None),
        (Access::READ_EXECUTE, Some(Rule::RegionKind)),
        (Access::WRITE | Access::EXECUTE, Some(Rule::WriteXorExecute)),
        (
            Access::READ_WRITE | Access::EXECUTE,
            Some(Rule::WriteXorExecute),
        ),
    ] {
        assert_eq!(region(1, 12, access.0), expected, "{access:?}");
    }
    assert_eq!(region(1, 13, 99), Some(Rule::RegionKind));
}

#[test]
fn identity_and_family() {
    let identity = |checks: &[(u32, u32, u32)]| {
        let mut builder = Builder::new(PRODUCT);
        for (register, mask, value) in checks {
            builder.identity(*register, *mask, *value);
        }
        builder.segment("run", SegmentKind::Run);
        broken(&builder.finish().unwrap())
    };
    let product = (0, 0xffff_0000, PRODUCT);
    assert_eq!(identity(&[product]), None);
    assert_eq!(identity(&[]), Some(Rule::IdentityProduct));
    assert_eq!(identity(&[(0, 0xffff, 0)]), Some(Rule::IdentityProduct));
    for order in [[product, (0, 0xffff, 0)], [(0, 0xffff, 0), product]] {
        assert_eq!(identity(&order), None);
    }
    assert_eq!(
        identity(&[product, (0x1234, 1, 1)]),
        Some(Rule::IdentityRegister)
    );

    let file = support::recording();
    let recording = Recording::parse(&file).unwrap();
    let family = Platform {
        family: 7,
        ..recording.header().platform()
    };
    let other = encode::assemble(family, &recording.sections());
    assert_eq!(broken(&other), Some(Rule::Family));
}

#[test]
fn segments() {
    let second = |at: usize, value: u8| changed(Section::Segments, 24 + at, [value]);
    let file = support::recording();
    let recording = Recording::parse(&file).unwrap();
    let [setup, run] = recording.segments() else {
        panic!()
    };
    let (first, count) = (setup.actions.get() as u8, run.actions.get() as u8);
    assert_eq!((second(8, first), second(12, count)), (None, None));
    for (at, value) in [
        (0, 200),
        (4, 9),
        (5, 1),
        (6, 1),
        (7, 1),
        (8, first - 1),
        (8, first + 1),
        (12, count - 1),
        (12, count + 1),
    ] {
        assert_eq!(second(at, value), Some(Rule::SegmentTable), "{at}: {value}");
    }
    use SegmentKind::{Finish, Run, Setup};
    let kinds = |kinds: &[SegmentKind]| {
        program(|builder| kinds.iter().for_each(|kind| builder.segment("this", *kind)))
    };
    for sound in [
        &[Run][..],
        &[Setup, Run],
        &[Setup, Setup, Run, Run, Finish, Finish],
    ] {
        assert_eq!(kinds(sound), None, "{sound:?}");
    }
    for order in [
        &[][..],
        &[Setup],
        &[Finish],
        &[Run, Setup],
        &[Finish, Run],
        &[Run, Finish, Run],
    ] {
        assert_eq!(kinds(order), Some(Rule::SegmentOrder), "{order:?}");
    }
}

#[test]
fn settings_come_first() {
    let write = |builder: &mut Builder| builder.write(0xf04, 0x2_0000);
    let fill = |builder: &mut Builder| builder.fill(DATA, 16, 1);
    let set_up = |make: fn(&mut Builder)| segment(SegmentKind::Setup, make);
    assert_eq!(
        segment(SegmentKind::Setup, |it| (write(it), write(it), fill(it)).0),
        None
    );
    assert_eq!(
        segment(SegmentKind::Setup, |it| (fill(it), write(it)).0),
        Some(Rule::RegisterWriteOrder)
    );
    assert_eq!(run(write), Some(Rule::RegisterWriteOrder));
    assert_eq!(set_up(|it| it.write(0x30, 1)), Some(Rule::RegisterWrite));
    assert_eq!(run(|it| it.launch(0, &[1], 1000)), Some(Rule::ActionForm));
}

#[test]
fn uploads_stay_in_data_and_descriptors() {
    for (va, length, sound) in [
        (DATA, 4096, true),
        (DATA, 4097, false),
        (DATA + 4095, 1, true),
        (DATA + 4095, 2, false),
        (DATA - 1, 1, false),
        (DESCRIPTORS, 64, true),
        (SCRATCH, 64, false),
        (SCRATCH + PAGE, 1, false),
    ] {
        let expected = (!sound).then_some(Rule::UploadRegion);
        assert_eq!(
            run(|it| it.fill(va, length, 1)),
            expected,
            "{va:#x} {length}"
        );
        let bytes = vec![7; length as usize];
        assert_eq!(
            run(|it| it.upload(va, &bytes)),
            expected,
            "{va:#x} {length}"
        );
    }
    let file = support::recording();
    let recording = Recording::parse(&file).unwrap();
    let is_fill = |op: u8| op == Opcode::Fill.code();
    let fill = recording
        .action_entries()
        .iter()
        .position(|it| is_fill(it.op))
        .unwrap();
    let none = changed(Section::Actions, 16 * fill + 4, [0; 4]);
    assert_eq!(none, Some(Rule::UploadRegion));
    assert_eq!(
        segment(SegmentKind::Finish, |it| it.fill(CODE, 64, 1)),
        Some(Rule::UploadRegion)
    );
}

#[test]
fn chains_are_made_ready_before_each_start() {
    const TIME: u32 = 1000;
    let submit = |it: &mut Builder| it.submit(1, DESCRIPTORS + 64, TIME);
    let rearm = |it: &mut Builder| it.rearm(DESCRIPTORS + 64);
    assert_eq!(run(|it| (rearm(it), submit(it)).1), None);
    assert_eq!(run(submit), Some(Rule::JobRestored));
    assert_eq!(
        run(|it| (it.rearm(DESCRIPTORS), submit(it)).1),
        Some(Rule::JobRestored)
    );
    assert_eq!(
        run(|it| (it.rearm(DESCRIPTORS + 128), submit(it)).1),
        Some(Rule::JobRestored)
    );
    assert_eq!(
        run(|it| (rearm(it), submit(it), submit(it)).1),
        Some(Rule::JobRestored)
    );
    assert_eq!(
        run(|it| (rearm(it), submit(it), rearm(it), submit(it)).1),
        None
    );
    assert_eq!(run(rearm), Some(Rule::JobSubmitted));
    assert_eq!(
        run(|it| (rearm(it), submit(it), rearm(it)).1),
        Some(Rule::JobSubmitted)
    );
    for (from, length, sound) in [
        (64, 16, true),
        (64, 15, false),
        (65, 16, false),
        (63, 17, true),
        (63, 16, false),
        (0, 80, true),
        (0, 79, false),
        (0, 64, false),
        (0, 4096, true),
        (80, 16, false),
    ] {
        let expected = (!sound).then_some(Rule::JobRestored);
        let filled = run(|it| {
            it.fill(DESCRIPTORS + from, length, 1);
            submit(it);
        });
        assert_eq!(filled, expected, "{from} {length}");
    }
    for (at, sound) in [
        (DESCRIPTORS, true),
        (DESCRIPTORS + 32, false),
        (DATA, false),
        (DESCRIPTORS + PAGE, false),
    ] {
        let found = run(|it| {
            it.rearm(at);
            it.submit(1, at, TIME);
        });
        assert_eq!(found, (!sound).then_some(Rule::JobHeader), "{at:#x}");
    }
    let slot = |queue| run(|it| (rearm(it), it.submit(queue, DESCRIPTORS + 64, TIME)).1);
    assert_eq!((slot(0), slot(2)), (None, None));
    assert_eq!(slot(3), Some(Rule::JobConfiguration));
    let timed = |time| run(|it| (rearm(it), it.submit(1, DESCRIPTORS + 64, time)).1);
    assert_eq!((timed(1), timed(0)), (None, Some(Rule::BoundedWait)));
}
