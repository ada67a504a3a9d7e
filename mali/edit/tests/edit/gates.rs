// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader does not fit its own job with one thing less.

use std::path::PathBuf;

use gpureplay_edit::shader::fits;
use gpureplay_edit::{EditError, Launch, Proof, Subject, inputs};
use gpureplay_format::encode::assemble;
use gpureplay_format::layout::Region;
use gpureplay_jobs::{Compute, Jobs};
use gpureplay_library::Recording;
use mali_facts::LocalStorage;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use crate::{PRELOADED, code, give, shipped, sized, with_code};

/// Its threads wait and share storage; its manifest has the command that recorded it.
fn softmax() -> (Recording, Jobs) {
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/softmax-g52"
    ));
    let recording = Recording::open(folder).unwrap();
    let jobs = Jobs::of(&recording).unwrap();
    (recording, jobs)
}

fn gate(jobs: &Jobs, index: usize, change: impl FnOnce(&mut Compute)) -> &'static str {
    let mut compute = jobs.jobs[index].compute.clone().unwrap();
    let code = compute.code.as_ref().unwrap().bytes.clone();
    assert!(fits(&code, &compute, jobs.profile).is_ok());
    change(&mut compute);
    match fits(&code, &compute, jobs.profile) {
        Err(EditError::Gate { gate, .. }) => gate,
        other => panic!("{other:?}"),
    }
}

fn without(field: &'static str) -> impl FnOnce(&mut Compute) {
    move |compute| give(compute, field, 0)
}

#[test]
fn each_gate_refuses_what_lacks_its_one_thing() {
    let (_, jobs) = softmax();
    for (field, expected) in [
        ("Shader contains barrier", "barrier"),
        ("Preload local invocation XY", "initial registers"),
        ("Uniform count", "uniforms"),
    ] {
        assert_eq!(gate(&jobs, 0, without(field)), expected, "{field}");
    }
    let no_storage = |compute: &mut Compute| {
        let storage: LocalStorage = compute.job.storage.unwrap().with("WLS instances", 31);
        compute.job.storage = Some(storage);
    };
    assert_eq!(gate(&jobs, 0, no_storage), "group storage");
    let (_, training, _) = shipped("train-digits-g52");
    let no_stack = |compute: &mut Compute| {
        let storage: LocalStorage = compute.job.storage.unwrap().with("TLS base pointer", 0);
        compute.job.storage = Some(storage);
    };
    assert_eq!(gate(&training, 0, no_stack), "thread storage");
    let few = |compute: &mut Compute| give(compute, "Shader register allocation", 2);
    assert_eq!(gate(&training, 0, few), "register allocation");
}

const COUNTS: [&str; 4] = [
    "Texture count",
    "Sampler count",
    "Attribute count",
    "Uniform buffer count",
];

#[test]
fn a_shader_with_images_does_not_fit_a_job_without() {
    let Some(samples) = gpureplay_kit::shared("reference/shader-samples/7212") else {
        return;
    };
    let code = std::fs::read(samples.join("img_arr.0.bin")).unwrap();
    let (_, jobs, _) = shipped("saxpy-g52");
    let mut generous = jobs.jobs[0].compute.clone().unwrap();
    give(&mut generous, "Uniform count", 127);
    for preload in PRELOADED {
        give(&mut generous, &format!("Preload {preload}"), 1);
    }
    for count in COUNTS {
        give(&mut generous, count, 16);
    }
    assert!(fits(&code, &generous, jobs.profile).is_ok());
    for (count, says) in [
        ("Texture count", "texture"),
        ("Attribute count", "attribute"),
    ] {
        let mut fewer = generous.clone();
        give(&mut fewer, count, 0);
        match fits(&code, &fewer, jobs.profile) {
            Err(EditError::Gate {
                gate: "resources",
                reason,
            }) => assert!(
                reason.contains(says) || reason.contains("does not belong"),
                "{reason}"
            ),
            other => println!("{count}: {:?}", other.map(|_| ())),
        }
    }
    let mut none = generous;
    for count in COUNTS {
        give(&mut none, count, 0);
    }
    let refused = fits(&code, &none, jobs.profile);
    assert!(
        matches!(
            refused,
            Err(EditError::Gate {
                gate: "resources",
                ..
            })
        ),
        "{refused:?}"
    );
}

fn with_region_at(recording: &Recording, va: u64) -> Recording {
    let view = recording.verified().recording();
    let mut regions: Vec<Region> = view.regions().to_vec();
    let mut last = regions[0];
    (last.va, last.pages) = (U64::new(va), 1.into());
    regions.push(last);
    let bytes = assemble(
        view.header().platform(),
        &[
            view.identity().as_bytes(),
            regions.as_bytes(),
            view.segments().as_bytes(),
            view.action_entries().as_bytes(),
            view.tensors().as_bytes(),
            view.piece_entries().as_bytes(),
            view.axis_entries().as_bytes(),
            view.strings(),
            view.data(),
        ],
    );
    Recording::from_bytes(bytes).unwrap()
}

#[test]
fn code_stays_where_branches_reach() {
    let (saxpy, _, bindings) = shipped("saxpy-g52");
    for (va, fits) in [
        (0x0e00_0000, true),
        (0xffff_f000, false),
        (0x1_2345_6000, false),
    ] {
        let recording = with_region_at(&saxpy, va);
        let jobs = Jobs::of(&recording).unwrap();
        let subject =
            Subject::new(&recording, &jobs, 0, std::slice::from_ref(&bindings), None).unwrap();
        let change = with_code(&subject, code(&subject));
        match subject.try_out(&change) {
            Ok(_) => assert!(fits, "{va:#x}"),
            Err(EditError::Gate { gate, .. }) => {
                assert_eq!((gate, fits), ("executable region", false))
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_softmax_with_a_barrier_is_unproven_and_another_size_is_found_wrong() {
    let (recording, jobs) = softmax();
    let values = inputs(&recording, 2).unwrap();
    let subject = Subject::new(&recording, &jobs, 0, &values, None).unwrap();
    assert!(
        subject.compute().unwrap().job.state.contains_barrier() != 0
            && subject.compute().unwrap().group_storage() > 0
    );
    let Proof::Unproven(reasons) = subject.proof() else {
        panic!("proven");
    };
    for reason in [
        "place in its work group",
        "has a barrier",
        "a work group shares",
    ] {
        assert!(reasons.iter().any(|it| it.contains(reason)), "{reasons:?}");
    }
    for local in [8, 32] {
        let change = sized(Launch::over([256, 1, 1], [local, 1, 1]).unwrap());
        let error = subject.try_out(&change).unwrap_err();
        assert!(matches!(error, EditError::Differs(_)), "{error}");
        assert!(error.to_string().contains("unproven, because"), "{error}");
    }
    let tried = subject.try_out(&sized(subject.launch())).unwrap();
    assert!(tried.different == 0 && !tried.proof.is_proven());
}
