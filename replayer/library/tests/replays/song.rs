// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recurrent network's song: no fault changes its states.

use std::path::PathBuf;

use gpureplay_library::device::{Choice, Fault};
use gpureplay_library::{Device, Options, Recording, Session, Tensor};
use mali_drive::middleware::FaultKind;

fn generate() -> Recording {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../recordings/generate-g52");
    Recording::open(path).unwrap()
}

fn session(fault: Option<Fault>) -> Session {
    let recording = generate();
    let mut options = Options::default();
    options.model.threads = Some(1);
    let id = recording.verified().recording().gpu_id();
    let device = Device::open(&Choice::Model(None), id, options.model).unwrap();
    let mut session = Session::on(
        recording,
        match fault {
            Some(fault) => device.with_fault(fault),
            None => device,
        },
    );
    let own = Tensor::from_fn(gpureplay_library::ElementType::I32, &[1], |_| -1.0).unwrap();
    session.bind("forced", own).unwrap();
    session
}

fn write(session: &mut Session, characters: usize) -> String {
    let mut text = String::new();
    for _ in 0..characters {
        session.run().unwrap();
        let read = session.read("character").unwrap();
        text.push(char::from(read.bytes()[0]));
    }
    text
}

#[test]
fn each_run_goes_on_from_the_last_one() {
    let mut session = session(None);
    assert!(session.read("hidden").unwrap().values().all(|v| v == 0.0));
    assert_eq!(write(&mut session, 30), "ten little frogs on the log, o");
    let states = session.states().unwrap();
    let names: Vec<&str> = states.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["hidden", "token"]);
    let rest = write(&mut session, 26);
    assert_eq!(rest, "ne hopped off, nine left.\n");

    for (name, value) in &states {
        session.bind(name, value.clone()).unwrap();
    }
    assert_eq!(write(&mut session, 26), rest);
    let mut other = self::session(None);
    for (name, value) in states {
        other.bind(&name, value).unwrap();
    }
    assert_eq!(write(&mut other, 26), rest);

    assert_eq!(write(&mut session, 6), "nine l");
    session.close().unwrap();
    assert_eq!(write(&mut session, 6), "ittle ");
    session.reset_states();
    assert_eq!(write(&mut session, 10), "ten little");
    session.unbind("token").unwrap();
    session.unbind("hidden").unwrap();
    assert_eq!(write(&mut session, 10), "ten little");
}

/// The fault's place varies with how often the device is asked about a job.
#[test]
fn a_run_that_fails_leaves_the_states_as_they_were() {
    let mut counting = session(Some(Fault::At(FaultKind::Memory, u64::MAX)));
    counting.prepare().unwrap();
    let calls = |session: &mut Session| session.device().unwrap().fault().unwrap().0;
    write(&mut counting, 3);
    let first = calls(&mut counting);
    write(&mut counting, 1);
    let second = calls(&mut counting);
    // A lost write costs a time-out of a minute.
    let (places, kinds): (_, &[FaultKind]) = if std::env::var_os("GPUREPLAY_EVERY_FAULT").is_some()
    {
        let every = &[
            FaultKind::FailedJob,
            FaultKind::Memory,
            FaultKind::LostWrite,
            FaultKind::PowerLoss,
        ];
        (second - first, every)
    } else {
        (2, &[FaultKind::FailedJob, FaultKind::Memory])
    };
    let stride = ((second - first) / places).max(1) as usize;
    let (mut failed, mut tried) = (0, 0);
    for &kind in kinds {
        for call in (first..second).step_by(stride) {
            tried += 1;
            let mut session = session(Some(Fault::At(kind, call)));
            let mut text = String::new();
            for _ in 0..10 {
                let before = session.states().unwrap();
                if session.run().is_err() {
                    failed += 1;
                    let after = session.states().unwrap();
                    assert_eq!(after, before, "{} {call}", kind.name());
                    session.run().unwrap();
                }
                let read = session.read("character").unwrap();
                text.push(char::from(read.bytes()[0]));
            }
            assert_eq!(text, "ten little", "{} {call}", kind.name());
        }
    }
    println!("{failed} of {tried} sessions had a run that failed");
    assert!(failed * 2 > tried, "{failed} of {tried}");
}

#[test]
fn attempts_go_on_from_the_state_before_the_run() {
    let mut counting = session(Some(Fault::At(FaultKind::Memory, u64::MAX)));
    write(&mut counting, 2);
    let calls = counting.device().unwrap().fault().unwrap().0;
    for call in (calls..calls + 60).step_by(7) {
        let mut session = session(Some(Fault::At(FaultKind::FailedJob, call)));
        session.set_retries(1);
        assert_eq!(write(&mut session, 20), "ten little frogs on ");
    }
}
