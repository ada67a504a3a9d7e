// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine on a tiny GPU: answers, errors, resets.

use crate::support::{Bound, DESCRIPTORS, Fake, Trouble, open, recording, verified};
use gpureplay_core::{DeviceError, ErrorKind, NO_ACTION, NoTensors, Options, Session, Workspace};
use gpureplay_format::layout::Segment;
use gpureplay_format::{Recording, SegmentKind};

const RAMP: [f32; 16] = [
    0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.,
];

fn expected(input: [f32; 16]) -> Vec<f32> {
    input.iter().map(|x| 2.0 * (2.0 * x + 1.0)).collect()
}

#[test]
fn two_inputs_get_their_own_right_answers() {
    let (file, mut workspace, mut fake) = (recording(), Workspace::new(), Fake::new());
    let recording = Recording::parse(&file).unwrap();
    let mut session = open(&mut fake, &recording, &mut workspace);
    let mut first = Bound::new(RAMP);
    session.run(&mut first).unwrap();
    assert_eq!(first.values(), expected(RAMP));
    let other = RAMP.map(|x| 100.0 - 3.0 * x);
    let mut second = Bound::new(other);
    session.run(&mut second).unwrap();
    assert_eq!(second.values(), expected(other));
    assert_eq!(session.submits(), 1);
    session.finish().unwrap();
    assert!(fake.memory.is_empty());
    assert_eq!(fake.resets, 2);
}

#[test]
fn a_thousand_runs_do_not_drift_and_need_few_accesses() {
    let (file, mut workspace, mut fake) = (recording(), Workspace::new(), Fake::new());
    let recording = Recording::parse(&file).unwrap();
    let mut session = open(&mut fake, &recording, &mut workspace);
    let before = session.gpu().accesses;
    for _ in 0..1000 {
        let mut bound = Bound::new(RAMP);
        session.run(&mut bound).unwrap();
        assert_eq!(bound.values(), expected(RAMP));
    }
    // Per run HEAD's low word, COMMAND, RAWSTAT and CLEAR; the rest once.
    assert!(session.gpu().accesses - before <= 4 * 1000 + 5);
}

#[test]
fn every_trouble_is_a_typed_error_and_the_next_run_is_right() {
    let chain = DESCRIPTORS;
    let cases = [
        (
            Trouble::JobFault(0x58),
            ErrorKind::JobFault {
                slot: 1,
                status: 0x58,
                tail: chain,
                fault_address: 0xdead_0000,
            },
        ),
        (
            Trouble::MmuFault,
            ErrorKind::MmuFault {
                status: 0x2c3,
                address: 0x12_1234_5000,
            },
        ),
        (
            Trouble::GpuFault,
            ErrorKind::GpuFault {
                status: 0x88,
                address: 0,
            },
        ),
        (
            Trouble::Hang,
            ErrorKind::JobTimeout {
                slot: 1,
                status: 0,
                tail: chain,
                timeout_us: 1_000_000,
            },
        ),
        (
            Trouble::NotDone,
            ErrorKind::JobNotDone {
                header: chain,
                status: 0,
            },
        ),
    ];
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    for (trouble, kind) in cases {
        let (mut workspace, mut fake) = (Workspace::new(), Fake::new());
        let mut session = open(&mut fake, &recording, &mut workspace);
        session.gpu().trouble = trouble;
        let started = session.gpu().time;
        let error = session.run(&mut Bound::new(RAMP)).unwrap_err();
        assert_eq!((error.kind, error.submits), (kind, 1), "{trouble:?}");
        // After write, two uploads, fill, bind, two rearms.
        assert_eq!(error.action, 7);
        assert!(session.gpu().time - started < 1_200_000, "{trouble:?}");
        assert!(session.gpu().memory.is_empty());

        session.gpu().trouble = Trouble::None;
        let mut bound = Bound::new(RAMP);
        session.run(&mut bound).unwrap();
        assert_eq!(bound.values(), expected(RAMP), "{trouble:?}");
    }
}

#[test]
fn a_run_segment_runs_alone_and_computes() {
    let (file, mut workspace, mut fake) = (recording(), Workspace::new(), Fake::new());
    let recording = Recording::parse(&file).unwrap();
    let is_run = |segment: &Segment| segment.kind == SegmentKind::Run.code();
    let run = recording.segments().iter().position(is_run).unwrap();
    let mut session = open(&mut fake, &recording, &mut workspace);
    let mut bound = Bound::new(RAMP);
    session.run_segment(run as u32, &mut bound).unwrap();
    assert_eq!((bound.values(), session.submits()), (expected(RAMP), 1));
}

#[test]
fn the_end_reports_a_gpu_that_cannot_be_reset_and_keeps_its_memory() {
    let (file, mut workspace, mut fake) = (recording(), Workspace::new(), Fake::new());
    let recording = Recording::parse(&file).unwrap();
    let mut session = open(&mut fake, &recording, &mut workspace);
    session.run(&mut Bound::new(RAMP)).unwrap();
    session.gpu().trouble = Trouble::ResetHangs;
    let error = session.finish().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Device(DeviceError::ResetFailed));
    assert!(!fake.memory.is_empty());
}

#[test]
fn a_lost_interrupt_costs_time_but_no_answer() {
    let (file, mut workspace, mut fake) = (recording(), Workspace::new(), Fake::new());
    let recording = Recording::parse(&file).unwrap();
    let mut session = open(&mut fake, &recording, &mut workspace);
    session.gpu().trouble = Trouble::LostInterrupt;
    let started = session.gpu().time;
    let mut bound = Bound::new(RAMP);
    session.run(&mut bound).unwrap();
    assert_eq!(bound.values(), expected(RAMP));
    assert!(session.gpu().time - started < 50_000);
}

#[test]
fn opening_fails_with_its_reason() {
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    let opened = |fake: &mut Fake, options| {
        let mut workspace = Workspace::new();
        Session::open(
            fake,
            verified(&recording),
            &mut workspace,
            options,
            &mut NoTensors,
        )
        .map(drop)
        .map_err(|error| (error.action, error.kind))
    };
    let mut fake = Fake::new();
    fake.trouble = Trouble::ResetHangs;
    let failed = ErrorKind::Device(DeviceError::ResetFailed);
    assert_eq!(
        opened(&mut fake, Options::default()),
        Err((NO_ACTION, failed))
    );
    assert_eq!(fake.released, 0);

    let mut fake = Fake::new();
    fake.trouble = Trouble::SoftResetHangs;
    assert_eq!(opened(&mut fake, Options::default()), Ok(()));

    let mut fake = Fake::new();
    fake.trouble = Trouble::NoPower;
    let error = opened(&mut fake, Options::default()).unwrap_err();
    assert!(matches!(
        error.1,
        ErrorKind::NoPower {
            register: 0x140,
            expected: 3,
            found: 0,
        }
    ));

    let mut workspace = Workspace::new();
    let mut session = open(Fake::new(), &recording, &mut workspace);
    let error = session.run(&mut NoTensors).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unbound { tensor: 0 });
    let mut short = Bound::new(RAMP);
    short.input.pop();
    let error = session.run(&mut short).unwrap_err();
    assert_eq!(
        error.kind,
        ErrorKind::TensorSize {
            tensor: 0,
            expected: 64,
            found: 63
        }
    );
}

#[test]
fn another_gpu_is_refused_unless_the_caller_insists() {
    let mut builder = crate::support::builder();
    builder.identity(0x100, 0xff, 0xff);
    crate::support::set_up(&mut builder);
    crate::support::run(&mut builder);
    let file = builder.finish().unwrap();
    let recording = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let error = Session::open(
        Fake::new(),
        verified(&recording),
        &mut workspace,
        Options::default(),
        &mut NoTensors,
    )
    .err()
    .unwrap();
    let found = ErrorKind::Identity {
        register: 0x100,
        mask: 0xff,
        expected: 0xff,
        found: 3,
    };
    assert_eq!(error.kind, found);
    let insist = Options {
        ignore_identity: true,
    };
    assert!(
        Session::open(
            Fake::new(),
            verified(&recording),
            &mut workspace,
            insist,
            &mut NoTensors
        )
        .is_ok()
    );
}
