// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording of a Mali-G57: saxpy, compiled by Debian's Mesa 25.0.7, recorded on the model's render node with a = 2.5.

#![allow(clippy::unwrap_used)]

use gpureplay_jobs::{Jobs, Report};
use gpureplay_library::{Options, Recording};

fn recording() -> Recording {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saxpy-g57.gpr");
    Recording::open(file).unwrap()
}

#[test]
fn it_replays_with_inputs_that_were_not_recorded() {
    let mut session = recording().session(Options::default()).unwrap();
    let inputs = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../recordings/saxpy-g52/inputs"
    );
    for (name, file) in [("x", "x2.npy"), ("y", "y2.npy")] {
        session.bind_file(name, format!("{inputs}/{file}")).unwrap();
    }
    session.run().unwrap();
    let numbers = |file: &str| -> Vec<f32> {
        let bytes = std::fs::read(format!("{inputs}/{file}")).unwrap();
        let words = bytes[bytes.len() - 4000..].as_chunks().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    };
    let (x, y) = (numbers("x2.npy"), numbers("y2.npy"));
    let expected: Vec<f32> = x
        .iter()
        .zip(&y)
        .map(|(x, y)| 2.5f32.mul_add(*x, *y))
        .collect();
    let out = session.read("out").unwrap();
    let found: Vec<f32> = out.values().map(|value| value as f32).collect();
    assert_eq!(found, expected);
}

#[test]
fn its_job_and_its_code_are_known() {
    let recording = recording();
    let jobs = Jobs::of(&recording).unwrap();
    assert_eq!(jobs.gpu.to_string(), "Mali-G57 r0p0");
    let [job] = &jobs.jobs[..] else {
        panic!("one job")
    };
    let work = job.work().unwrap();
    assert_eq!(work.items(), [1000, 1, 1]);
    assert_eq!((work.storage, work.uniform_bytes), ([0, 0], 32));
    let code = job.valhall.as_ref().unwrap().code.as_ref().unwrap();
    assert_eq!(code.address, work.shader);
    let text = code.to_string();
    assert_eq!((code.instructions(), text.lines().count()), (20, 20));
    assert!(text.contains("FMA.f32 r2, u6, ^r2, ^r3"), "{text}");
    let report = Report::new(&recording, &jobs, &[0], None, None);
    let [kernel] = &report.kernels[..] else {
        panic!("one kernel")
    };
    assert_eq!(kernel.hash, format!("{:016x}", code.hash));
    assert_eq!(
        (kernel.bytes, kernel.clauses, kernel.instructions),
        (160, 0, 20)
    );
    // r0 to r7, and r60.
    assert_eq!(kernel.registers, 9);
}
