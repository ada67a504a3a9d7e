// SPDX-License-Identifier: MIT OR Apache-2.0
//! A training step's states; no fault changes them.

use std::path::PathBuf;
use std::sync::LazyLock;

use gpureplay_library::device::{Choice, Fault};
use gpureplay_library::{Device, ModelOptions, Recording, Session, Tensor};
use mali_drive::middleware::FaultKind;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../recordings/train-digits-g52")
}

fn session(fault: Option<Fault>) -> Session {
    let recording = Recording::open(folder()).unwrap();
    let id = recording.verified().recording().gpu_id();
    let device = Device::open(&Choice::Model(None), id, ModelOptions::default()).unwrap();
    let mut session = Session::on(
        recording,
        match fault {
            Some(fault) => device.with_fault(fault),
            None => device,
        },
    );
    for name in ["images", "labels", "rate"] {
        let file = folder().join(format!("inputs/{name}.npy"));
        session.bind_file(name, file).unwrap();
    }
    session
}

fn step(session: &mut Session) -> f64 {
    session.run().unwrap();
    session.read("loss").unwrap().value(0)
}

fn calls(session: &mut Session) -> u64 {
    session.device().unwrap().fault().unwrap().0
}

#[test]
fn each_run_goes_on_from_the_last_one() {
    let mut session = session(None);
    let velocity = session.read("fc.bias.velocity").unwrap();
    assert!(velocity.values().all(|value| value == 0.0));
    let losses: Vec<f64> = (0..4).map(|_| step(&mut session)).collect();
    // Always the same batch: each step lowers its loss.
    assert!(
        losses.windows(2).all(|pair| pair[1] < pair[0]),
        "{losses:?}"
    );
    let states = session.states().unwrap();
    assert_eq!(states.len(), 16);
    let next = step(&mut session);

    session.close().unwrap();
    for (name, value) in &states {
        session.bind(name, value.clone()).unwrap();
    }
    assert_eq!(step(&mut session), next);
    session.reset_states();
    assert_eq!(step(&mut session), losses[0]);
    session.close().unwrap();
    assert_eq!(step(&mut session), losses[1]);
    for (name, _) in &states {
        session.unbind(name).unwrap();
    }
    assert_eq!(step(&mut session), losses[0]);
}

type Steps = (Vec<(String, Tensor)>, std::ops::Range<u64>);

/// States after two steps, and calls of the second.
static TWO_STEPS: LazyLock<Steps> = LazyLock::new(|| {
    let mut session = session(Some(Fault::At(FaultKind::Memory, u64::MAX)));
    step(&mut session);
    let first = calls(&mut session);
    step(&mut session);
    let second = calls(&mut session);
    (session.states().unwrap(), first..second)
});

#[test]
fn a_run_that_fails_leaves_the_states_as_they_were() {
    let (expected, calls) = &*TWO_STEPS;
    let (mut failed, mut tried) = (0, 0);
    let middle = (calls.start + calls.end) / 2;
    // The last calls read states that jobs have changed already.
    for (kind, places) in [
        (FaultKind::FailedJob, [calls.start, middle]),
        (FaultKind::Memory, [middle, calls.end - 2]),
    ] {
        for call in places {
            let mut session = session(Some(Fault::At(kind, call)));
            tried += 1;
            // The fault's place varies with how often the device is asked about a job.
            for _ in 0..2 {
                let before = session.states().unwrap();
                if session.run().is_err() {
                    failed += 1;
                    let after = session.states().unwrap();
                    assert!(after == before, "{} {call}", kind.name());
                    step(&mut session);
                }
            }
            let after = session.states().unwrap();
            assert!(after == *expected, "{} {call}", kind.name());
        }
    }
    println!("{failed} of {tried} runs failed");
    assert!(failed * 2 > tried, "{failed} of {tried}");
}

#[test]
fn an_attempt_goes_on_from_the_states_before_the_run() {
    let (expected, calls) = &*TWO_STEPS;
    let middle = (calls.start + calls.end) / 2;
    let mut session = session(Some(Fault::At(FaultKind::FailedJob, middle)));
    session.set_retries(1);
    step(&mut session);
    step(&mut session);
    assert_eq!(session.timing().retries, 1);
    assert_eq!(session.states().unwrap(), *expected);
}
