// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refuses shaders that do not fit.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use gpureplay_edit::shader::fits;
use gpureplay_edit::tune::{By, Candidate, Standing, tune};
use gpureplay_edit::{EditError, Launch, Subject, inputs};
use gpureplay_jobs::Jobs;
use gpureplay_library::{Options, Recording};

use crate::{PRELOADED, code, folder, give, shipped, sized, with_code};

#[test]
fn shaders_that_do_not_fit_are_refused_by_the_gate_that_they_break() {
    let (_, saxpy, _) = shipped("saxpy-g52");
    let job = saxpy.jobs[0].compute.as_ref().unwrap();
    let own = &job.code.as_ref().unwrap().bytes;
    assert!(fits(own, job, saxpy.profile).is_ok());
    let mut gates = BTreeSet::new();
    for name in ["digits-g52", "lenet-g52", "acl-gemm-g52"] {
        let others = Jobs::of(&Recording::open(folder(name)).unwrap()).unwrap();
        for other in &others.jobs {
            let other = other.compute.as_ref().unwrap();
            let code = &other.code.as_ref().unwrap().bytes;
            assert!(fits(code, other, others.profile).is_ok());
            let mut more = job.clone();
            for field in PRELOADED {
                give(&mut more, &format!("Preload {field}"), 1);
            }
            give(&mut more, "Uniform count", 127);
            for job in [job, &more] {
                match fits(code, job, saxpy.profile) {
                    Err(EditError::Gate { gate, .. }) => drop(gates.insert(gate)),
                    other => assert!(other.is_ok()),
                }
            }
        }
    }
    let mut few = job.clone();
    give(&mut few, "Preload global invocation X", 0);
    let error = fits(own, &few, saxpy.profile).unwrap_err().to_string();
    assert!(error.starts_with("initial registers"), "{error}");
    let error = fits(&own[1..], job, saxpy.profile).unwrap_err().to_string();
    assert!(error.starts_with("code"), "{error}");
    // Mesa emits this instruction for G52 and not for G71.
    let digits = Jobs::of(&Recording::open(folder("digits-g52")).unwrap()).unwrap();
    let g71 = mali_facts::Profile::by_name("g71").unwrap();
    let refused = digits.jobs.iter().filter_map(|job| {
        let job = job.compute.as_ref().unwrap();
        fits(&job.code.as_ref().unwrap().bytes, job, g71).err()
    });
    let refused: Vec<String> = refused.map(|error| error.to_string()).collect();
    let named = |error: &String| error.contains("FRCP.f32") && error.contains("Mali-G71");
    assert!(refused.iter().any(named), "{refused:?}");
    for gate in ["uniforms", "register allocation", "thread storage"] {
        assert!(gates.contains(gate), "{gate}: {gates:?}");
    }
}

fn wrong_and_cheaper(subject: &Subject<'_>) -> Vec<u8> {
    let own = code(subject);
    for bit in 0..own.len() * 8 {
        let mut code = own.clone();
        code[bit / 8] ^= 1 << (bit % 8);
        let Ok(tried) = subject.try_out(&with_code(subject, code.clone())) else {
            continue;
        };
        let (before, after) = (tried.before.unwrap(), tried.after.unwrap());
        if tried.different > 0 && after.instructions <= before.instructions {
            return code;
        }
    }
    panic!("no such bit")
}

#[test]
fn a_wrong_variant_is_never_the_best() {
    let (recording, jobs, _) = shipped("saxpy-g52");
    let inputs = inputs(&recording, 2).unwrap();
    let subject = Subject::new(&recording, &jobs, 0, &inputs, None).unwrap();
    let launch = subject.launch();
    let planted = Candidate {
        name: "planted".into(),
        change: Ok(with_code(&subject, wrong_and_cheaper(&subject))),
    };
    let size = |local: [u32; 3]| Candidate {
        name: format!("{local:?}"),
        change: Launch::over(launch.global(), local)
            .map(sized)
            .map_err(|error| error.to_string()),
    };
    let candidates = [
        planted,
        size([250, 1, 1]),
        size([7, 1, 1]),
        size([500, 1, 1]),
    ];
    let tuning = tune(&subject, &candidates, 2, By::Work, &AtomicU64::new(0)).unwrap();
    let standings: Vec<Standing> = tuning.rows.iter().map(|row| row.standing).collect();
    let expected = [
        Standing::Recorded,
        Standing::Wrong,
        Standing::Equal,
        Standing::Refused,
        Standing::Refused,
    ];
    assert_eq!(standings, expected);
    let work = |at: usize| tuning.rows[at].work.as_ref().unwrap().instructions;
    assert!(work(1) <= work(0));
    assert_eq!((tuning.best, tuning.rows[1].rank), (None, None));
    assert!(
        tuning.rows[1..]
            .iter()
            .all(|row| row.proven || !row.reason.is_empty())
    );
    assert!(tuning.rows[2].model_seconds.is_some() && tuning.rows[1].model_seconds.is_none());
    let again = tune(&subject, &candidates, 0, By::Work, &AtomicU64::new(0)).unwrap();
    for (one, other) in tuning.rows.iter().zip(&again.rows) {
        assert_eq!(
            (one.rank, one.cost, &one.reason),
            (other.rank, other.cost, &other.reason)
        );
    }
}

#[test]
fn another_shader_is_put_into_the_recording_for_one_job_only() {
    let (recording, jobs, bindings) = shipped("digits-g52");
    let inputs = inputs(&recording, 1).unwrap();
    // Jobs 0, 2 and 4 of set-up run one shader.
    let subject = Subject::new(&recording, &jobs, 2, &inputs, None).unwrap();
    let wrong = with_code(&subject, wrong_and_cheaper(&subject));
    let changed = subject.apply(&wrong).unwrap();
    assert!(changed.tried.different > 0);
    assert!(changed.manifest.provenance["edited"].contains("other bytes"));
    let mut cases = changed.manifest.cases.iter();
    assert!(cases.all(|case| case.expected.is_empty()));
    let new = Recording::from_bytes(changed.bytes).unwrap();
    let table = Jobs::of(&new).unwrap();
    let hashes = |jobs: &Jobs| -> Vec<u64> {
        let compute = jobs.jobs.iter().map(|job| job.compute.as_ref().unwrap());
        compute.map(|it| it.identity().unwrap().hash).collect()
    };
    let (before, after) = (hashes(&jobs), hashes(&table));
    let differ: Vec<usize> = (0..20).filter(|&at| before[at] != after[at]).collect();
    assert_eq!(differ, [2]);
    let mut session = new.session(Options::default()).unwrap();
    session.bind_all(bindings);
    session.run().unwrap();
}

#[test]
fn the_pooling_of_lenet_touches_a_quarter_of_the_lines_with_wider_groups() {
    let (recording, jobs, _) = shipped("lenet-g52");
    let inputs = inputs(&recording, 1).unwrap();
    let subject = Subject::new(&recording, &jobs, 14, &inputs, None).unwrap();
    let global = subject.launch().global();
    let candidates = [[1, 4, 4], [25, 4, 2]].map(|local| Candidate {
        name: format!("{local:?}"),
        change: Ok(sized(Launch::over(global, local).unwrap())),
    });
    let tuning = tune(&subject, &candidates, 0, By::Lines, &AtomicU64::new(0)).unwrap();
    let costs: Vec<_> = tuning.rows.iter().map(|row| row.cost).collect();
    assert_eq!(costs, [Some(4000), Some(4000), Some(948)]);
    assert_eq!((tuning.best, tuning.by), (Some(2), "memory lines"));
    let by_work = tune(&subject, &candidates, 0, By::Work, &AtomicU64::new(0)).unwrap();
    assert_eq!(by_work.best, None);
}
