// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proven changes compute the same bits.

use gpureplay_edit::{EditError, Launch, Proof, Subject, inputs};
use gpureplay_jobs::Jobs;
use gpureplay_library::{Recording, Session};
use mali_facts::ComputeParameters;

use crate::{code, folder, shipped, sized, with_code};

const SHIPPED: [&str; 5] = [
    "digits-g52",
    "lenet-g52",
    "saxpy-g52",
    "acl-gemm-g52",
    "acl-conv-g52",
];

fn divisors(number: u64) -> Vec<u32> {
    (1..=number)
        .filter(|it| number.is_multiple_of(*it))
        .map(|it| it as u32)
        .collect()
}

fn others(launch: Launch) -> Vec<Launch> {
    let [x, y, z] = launch.global().map(divisors);
    let mut all = Vec::new();
    for &x in &x {
        for &y in &y {
            for &z in &z {
                let local = [x, y, z];
                if x * y * z <= 384 && local != launch.local {
                    all.push(Launch::over(launch.global(), local).unwrap());
                }
            }
        }
    }
    all
}

#[test]
fn derived_fields_are_those_that_the_driver_computed() {
    let mut checked = 0;
    for name in SHIPPED {
        let jobs = Jobs::of(&Recording::open(folder(name)).unwrap()).unwrap();
        for job in &jobs.jobs {
            let Some(compute) = &job.compute else {
                continue;
            };
            let words = Launch::of(compute).words(compute).unwrap();
            assert_eq!(
                words[0].1,
                compute.job.invocation.to_bytes(),
                "{name} {}",
                job.index
            );
            let parameters: &ComputeParameters = &compute.job.parameters;
            assert_eq!(words[1].1, parameters.to_bytes(), "{name} {}", job.index);
            checked += 1;
        }
    }
    assert_eq!(checked, 20 + 20 + 1 + 3 + jobs_of("acl-conv-g52"));
}

fn jobs_of(name: &str) -> usize {
    Jobs::of(&Recording::open(folder(name)).unwrap())
        .unwrap()
        .jobs
        .len()
}

#[test]
fn all_other_sizes_of_digits_are_proven_and_equal_bit_for_bit() {
    let (recording, jobs, _) = shipped("digits-g52");
    let inputs = inputs(&recording, 2).unwrap();
    let mut tried = 0;
    for index in 8..20 {
        let subject = Subject::new(&recording, &jobs, index, &inputs, None).unwrap();
        assert_eq!(subject.proof(), &Proof::Proven, "job {index}");
        for launch in others(subject.launch()) {
            let checked = launch.check(subject.compute().unwrap(), jobs.profile);
            if checked.is_err() {
                continue;
            }
            let found = subject.try_out(&sized(launch)).unwrap();
            assert!(
                found.proof.is_proven() && found.different == 0,
                "job {index} {launch:?}"
            );
            let (before, after) = (found.before.unwrap(), found.after.unwrap());
            assert_eq!(before.bytes_written, after.bytes_written, "job {index}");
            tried += 1;
        }
    }
    assert!(tried >= 57, "{tried}");
}

#[test]
fn a_thread_too_many_is_refused_with_the_first_address_outside() {
    let (recording, jobs, _) = shipped("saxpy-g52");
    let inputs = inputs(&recording, 2).unwrap();
    let subject = Subject::new(&recording, &jobs, 0, &inputs, None).unwrap();
    let launch = |global: u64, local: u32| Launch::over([global, 1, 1], [local, 1, 1]).unwrap();
    let error = subject.try_out(&sized(launch(1024, 8))).unwrap_err();
    let view = recording.verified().recording();
    let behind = |name: &str| {
        let (_, tensor) = view.tensor_named(name).unwrap();
        view.pieces(tensor).unwrap()[0].va.get() + 4000
    };
    let first = ["x", "y", "out"].map(behind).into_iter().min().unwrap();
    let text = error.to_string();
    assert!(matches!(error, EditError::Outside(_)), "{text}");
    assert!(text.contains(&format!("{first:#x}")), "{text}");
    let error = subject.try_out(&sized(launch(992, 8))).unwrap_err();
    assert!(matches!(error, EditError::Differs(_)), "{error}");
    let found = subject.try_out(&sized(launch(1000, 250))).unwrap();
    assert!(found.proof.is_proven());
    for local in [500, 1000] {
        let error = subject.try_out(&sized(launch(1000, local))).unwrap_err();
        assert!(error.to_string().contains("at most 384"), "{error}");
    }
}

#[test]
fn what_is_put_into_the_recording_computes_the_same_and_says_what_was_done() {
    let (recording, jobs, bindings) = shipped("digits-g52");
    let inputs = inputs(&recording, 2).unwrap();
    let subject = Subject::new(&recording, &jobs, 11, &inputs, None).unwrap();
    let launch = Launch::over(subject.launch().global(), [4, 4, 1]).unwrap();
    let changed = subject.apply(&sized(launch)).unwrap();
    let new = Recording::from_bytes(changed.bytes.clone()).unwrap();
    let (old, table) = (&jobs, Jobs::of(&new).unwrap());
    for (before, after) in old.jobs.iter().zip(&table.jobs) {
        let (before, after) = (
            before.compute.as_ref().unwrap(),
            after.compute.as_ref().unwrap(),
        );
        let local = if after.local == [4, 4, 1] {
            launch.local
        } else {
            before.local
        };
        assert_eq!((after.local, after.global()), (local, before.global()));
    }
    assert_eq!(table.jobs[11].compute.as_ref().unwrap().local, [4, 4, 1]);
    let run = |recording: &Recording| {
        let mut session: Session = recording
            .session(gpureplay_library::Options::default())
            .unwrap();
        session.bind_all(bindings.clone());
        let mut all = Vec::new();
        for _ in 0..3 {
            session.run().unwrap();
            all.push(session.outputs());
        }
        all
    };
    let (before, after) = (run(&recording), run(&new));
    assert!(before == after && before[0] == before[2]);
    let provenance = &changed.manifest.provenance;
    assert!(provenance["edited"].contains("proven"), "{provenance:?}");
    assert_ne!(
        provenance["sha256"],
        recording.recorded().manifest().unwrap().provenance["sha256"]
    );
    let own = with_code(&subject, code(&subject));
    let same = subject.apply(&own).unwrap();
    assert!(same.bytes == recording.files().bytes);
}
