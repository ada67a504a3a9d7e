// SPDX-License-Identifier: MIT OR Apache-2.0
//! saxpy by Debian's Mesa 25.0.7 for Mali-G57, from the model's render node with a = 2.5.

use gpureplay_jobs::analysis::analyse::analyse;
use gpureplay_jobs::analysis::report::Clause;
use gpureplay_jobs::{Jobs, Report};
use gpureplay_library::{ModelOptions, Options, Recording, Session};

const INPUTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../recordings/saxpy-g52/inputs"
);

fn recording() -> Recording {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saxpy-g57.gpr");
    Recording::open(file).unwrap()
}

fn bind(session: &mut Session) -> Result<(), gpureplay_library::Error> {
    session.bind_file("x", format!("{INPUTS}/x2.npy"))?;
    session.bind_file("y", format!("{INPUTS}/y2.npy"))?;
    Ok(())
}

#[test]
fn it_replays_with_inputs_that_were_not_recorded() {
    let mut session = recording().session(Options::default()).unwrap();
    bind(&mut session).unwrap();
    session.run().unwrap();
    let numbers = |file: &str| -> Vec<f32> {
        let bytes = std::fs::read(format!("{INPUTS}/{file}")).unwrap();
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

#[test]
fn analyses_count_warps_of_16_lanes_and_all_messages() {
    let recording = recording();
    let jobs = Jobs::of(&recording).unwrap();
    let what = "all".parse().unwrap();
    let report = analyse(&recording, &jobs, &[0], what, ModelOptions::default(), bind).unwrap();
    let [job] = &report.jobs[..] else {
        panic!("one job")
    };
    let sum = |of: fn(&Clause) -> u64| job.clauses.iter().map(of).sum::<u64>();
    // 125 warps of 8 threads, and two blocks: 16 instructions and 4.
    assert_eq!((job.clauses.len(), sum(|it| it.warps)), (2, 250));
    let own = |it: &Clause| it.lanes * u64::from(it.fma + it.add + it.messages);
    assert_eq!(sum(own), 20 * 1000);
    assert_eq!(sum(|it| it.lanes * u64::from(it.messages)), 3 * 1000);
    // Each warp reads 32 bytes of x and of y, and writes as many, in a line each.
    let memory = |of: fn(&gpureplay_jobs::analysis::report::Memory) -> u64| {
        let all = job.clauses.iter().filter_map(|it| it.memory.as_ref());
        all.map(of).sum::<u64>()
    };
    assert_eq!(memory(|it| it.accesses), 3 * 125);
    assert_eq!(memory(|it| it.used), 3 * 4000);
    assert_eq!(memory(|it| it.lines), 3 * 125);
}
