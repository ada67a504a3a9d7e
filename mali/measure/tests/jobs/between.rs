// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two unordered jobs that write one tensor race.

use std::path::Path;

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{Encoding, Opcode};
use gpureplay_jobs::Jobs;
use gpureplay_jobs::analysis::analyse::analyse;
use gpureplay_jobs::analysis::report::{RaceKind, Report, Verdict};
use gpureplay_library::{Error, ModelOptions, Recording, Session};
use mali_facts::{JobHeader, Memory, job::COMPUTE_BYTES};
use mali_jobs::walk::{Full, submissions};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

const SECOND: u64 = 0x0a00_7300;

fn entry(opcode: Opcode, a: u8, c: usize, d: u64) -> ActionEntry {
    ActionEntry {
        op: opcode.code(),
        a,
        b: U16::ZERO,
        c: U32::new(c as u32),
        d: U64::new(d),
    }
}

fn twice(fields: &[(&str, u64)]) -> Recording {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/saxpy-g52");
    let recording = Recording::open(path).unwrap();
    let mut job = [0; COMPUTE_BYTES as usize];
    let mut first = 0;
    let found: Result<(), Full> =
        submissions(recording.verified().chains().unwrap(), |submission| {
            first = submission.head;
            assert!(submission.memory.read(first, &mut job));
            Ok(())
        });
    found.unwrap();
    let header: [u8; JobHeader::SIZE] = job[..JobHeader::SIZE].try_into().unwrap();
    let before: JobHeader = JobHeader::from_bytes(&header).with("Next", SECOND);
    let mut after: JobHeader = JobHeader::from_bytes(&header)
        .with("Next", 0)
        .with("Index", 2);
    for (field, value) in fields {
        after = after.with(field, *value);
    }
    job[..JobHeader::SIZE].copy_from_slice(&after.to_bytes());
    let view = recording.verified().recording();
    let mut data = view.data().to_vec();
    let cursor = data.len() as u64;
    data.extend(job);
    data.extend(before.to_bytes());
    let mut actions = view.action_entries().to_vec();
    let rearm = actions
        .iter()
        .position(|it| it.op == Opcode::Rearm.code())
        .unwrap();
    let raw = Encoding::Raw.code();
    let new = [
        entry(Opcode::Seek, 0, 0, cursor),
        entry(Opcode::Upload, raw, job.len(), SECOND),
        entry(Opcode::Upload, raw, JobHeader::SIZE, first),
        entry(Opcode::Rearm, 0, 0, SECOND),
    ];
    let count = new.len() as u32;
    actions.splice(rearm..rearm, new);
    let mut segments = view.segments().to_vec();
    let run = segments.last_mut().unwrap();
    run.actions = U32::new(run.actions.get() + count);
    let bytes = assemble(
        view.header().platform(),
        &[
            view.identity().as_bytes(),
            view.regions().as_bytes(),
            segments.as_bytes(),
            actions.as_bytes(),
            view.tensors().as_bytes(),
            view.piece_entries().as_bytes(),
            view.axis_entries().as_bytes(),
            view.strings(),
            &data,
        ],
    );
    Recording::from_bytes(bytes).unwrap()
}

fn analysed(recording: &Recording) -> Report {
    let jobs = Jobs::of(recording).unwrap();
    assert_eq!((jobs.chains.len(), jobs.jobs.len()), (1, 2));
    let bind = |session: &mut Session| -> Result<(), Error> {
        let inputs =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/saxpy-g52/inputs");
        session.bind_file("x", inputs.join("x.npy"))?;
        session.bind_file("y", inputs.join("y.npy"))
    };
    let what = "races".parse().unwrap();
    let report = analyse(
        recording,
        &jobs,
        &[0, 1],
        what,
        ModelOptions::default(),
        bind,
    );
    report.map_err(|error: Error| error.to_string()).unwrap()
}

#[test]
fn jobs_that_nothing_orders_race_for_what_both_write() {
    let report = analysed(&twice(&[("Barrier", 0)]));
    assert_eq!(report.verdict("races"), Some(Verdict::Found));
    assert!(report.jobs[0].conflicts.is_empty());
    let [conflict] = &report.jobs[1].conflicts[..] else {
        panic!("{:?}", report.jobs[1].conflicts);
    };
    assert_eq!((conflict.with, conflict.kind), (0, RaceKind::WriteWrite));
    assert_eq!((conflict.words, conflict.at.as_str()), (1000, "out"));
    let named = conflict.instructions.iter().flatten();
    assert_eq!(named.filter(|text| text.contains("STORE.i32")).count(), 2);
}

#[test]
fn a_barrier_or_a_dependency_orders_jobs() {
    for fields in [
        &[("Barrier", 1)][..],
        &[("Barrier", 0), ("Dependency 1", 1)],
        &[("Barrier", 0), ("Dependency 2", 1)],
    ] {
        let report = analysed(&twice(fields));
        assert_eq!(report.verdict("races"), Some(Verdict::Clean), "{fields:?}");
        assert!(report.jobs.iter().all(|job| job.conflicts.is_empty()));
    }
}
