// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every fault at every device call, then a bit-exact run.

use crate::support::{Bound, Fake, OUTPUT, Trouble, open, recording, verified};
use gpureplay_core::middleware::{Call, Trace};
use gpureplay_core::{Chain, ErrorKind, Gpu, NoTensors, Options, Session, Workspace};
use gpureplay_format::Recording;
use mali_drive::Verified;
use mali_drive::middleware::{Diff, Divergence, FaultKind, Faulty};
use mali_facts::registers::job::JOB_INT_RAWSTAT;

const INPUT: [f32; 16] = [1.5; 16];

#[test]
fn a_job_that_failed_by_itself_stays_failed() {
    let mut fake = Fake::new();
    // Slot 1 failed: without that bit the engine would wait.
    fake.registers.insert(JOB_INT_RAWSTAT, 1 << 17);
    for kind in [FaultKind::FailedJob, FaultKind::MmuFault] {
        let mut faulty = Faulty::new(&mut fake, kind, 0);
        assert_eq!(faulty.read32(JOB_INT_RAWSTAT), 1 << 17, "{kind:?}");
        assert!(faulty.fired());
    }
}

#[test]
fn a_fault_at_every_call_is_survived() {
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let mut expected = Bound::new(INPUT);
    let mut session = open(Fake::new(), &recording, &mut workspace);
    session.run(&mut expected).unwrap();
    drop(session);

    let (mut errors, mut survived, mut longest) = (0, 0, 0);
    for &kind in FaultKind::ALL {
        // A stuck line spins to its bound.
        let step = if kind == FaultKind::StuckInterrupt {
            16
        } else {
            1
        };
        for at in (0..).step_by(step) {
            let mut fake = Fake::new();
            let mut faulty = Faulty::new(&mut fake, kind, at);
            match with_fault(&mut faulty, verified(&recording), &mut workspace) {
                (Some(output), time) => {
                    assert_eq!(output, expected.output, "{kind:?} at {at}");
                    survived += 1;
                    longest = longest.max(time);
                }
                (None, time) => {
                    errors += 1;
                    longest = longest.max(time);
                }
            }
            let fired = faulty.fired();
            assert!(fake.memory.is_empty(), "pages lost after {kind:?} at {at}");
            let again = with_fault(
                &mut Faulty::new(&mut fake, kind, u64::MAX),
                verified(&recording),
                &mut workspace,
            );
            assert_eq!(
                again.0.as_ref(),
                Some(&expected.output),
                "after {kind:?} at {at}"
            );
            if !fired {
                break;
            }
        }
    }
    println!("{errors} typed errors, {survived} right answers, longest {longest} µs");
    assert!(errors > 100 && survived > 10);
    assert!(longest < 1_300_000);
}

fn with_fault(
    faulty: &mut Faulty<&mut Fake>,
    verified: Verified<'_>,
    workspace: &mut Workspace,
) -> (Option<Vec<u8>>, u64) {
    let started = faulty.now_us();
    let mut bound = Bound::new(INPUT);
    let opened = Session::open(
        &mut *faulty,
        verified,
        workspace,
        Options::default(),
        &mut NoTensors,
    );
    let Ok(mut session) = opened else {
        drop(opened);
        return (None, faulty.now_us() - started);
    };
    let result = session.run(&mut bound);
    let time = session.gpu().now_us() - started;
    if session.gpu().fired() {
        // Power lost at the end shows in the next run.
        let mut again = Bound::new(INPUT);
        if session.run(&mut again).is_err() {
            assert!(result.is_ok());
            session.run(&mut again).unwrap();
        }
        assert_eq!(again.values(), [8.0; 16]);
    }
    (result.is_ok().then_some(bound.output), time)
}

#[test]
fn seeded_faults_repeat() {
    let place = |seed| {
        let faulty = Faulty::seeded(Fake::new(), seed, 100);
        format!("{faulty:?}")
    };
    assert_eq!(place(7), place(7));
    assert_ne!(place(7), place(8));
}

#[test]
fn a_trace_shows_the_submit() {
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let mut calls = Vec::new();
    let traced = Trace::new(Fake::new(), |call| calls.push(call));
    let mut session = open(traced, &recording, &mut workspace);
    session.run(&mut Bound::new(INPUT)).unwrap();
    session.finish().unwrap();
    let doorbells = calls
        .iter()
        .filter(|call| **call == Call::Write(0x18e0, 1))
        .count();
    assert_eq!(doorbells, 1);
    assert!(calls.contains(&Call::Fill(OUTPUT, 64, 0)));
    let chain = Chain {
        index: 0,
        head: crate::support::DESCRIPTORS,
        queue: 1,
        space: 0,
    };
    let of_chains: Vec<&Call> = calls
        .iter()
        .filter(|call| {
            matches!(
                call,
                Call::Start(_) | Call::End(..) | Call::Write(0x18e0, 1)
            )
        })
        .collect();
    let expected = [
        &Call::Start(chain),
        &Call::Write(0x18e0, 1),
        &Call::End(chain, Ok(())),
    ];
    assert_eq!(of_chains, expected);
}

#[test]
fn a_chain_that_failed_ends_with_its_error() {
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let mut calls = Vec::new();
    let mut fake = Fake::new();
    fake.trouble = Trouble::JobFault(0x40);
    let traced = Trace::new(fake, |call| calls.push(call));
    let mut session = open(traced, &recording, &mut workspace);
    let error = session.run(&mut Bound::new(INPUT)).unwrap_err();
    drop(session);
    let ends: Vec<&Call> = calls
        .iter()
        .filter(|call| matches!(call, Call::End(..)))
        .collect();
    assert!(matches!(ends[..], [Call::End(_, Err(kind))] if *kind == error.kind));
    assert!(matches!(
        error.kind,
        ErrorKind::JobFault { status: 0x40, .. }
    ));
}

#[test]
fn two_devices_are_told_apart() {
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let mut run = |trouble| {
        let mut second = Fake::new();
        second.trouble = trouble;
        let diff = Diff::new(Fake::new(), second, |_| false);
        let mut session = open(diff, &recording, &mut workspace);
        session.run(&mut Bound::new(INPUT)).unwrap();
        session.gpu().divergence()
    };
    assert_eq!(run(Trouble::None), None);
    let header = crate::support::DESCRIPTORS;
    assert_eq!(
        run(Trouble::NotDone),
        Some(Divergence::Memory(1, header, 1, 0))
    );
}
