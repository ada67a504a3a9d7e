// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole jobs from other recordings, with mapped pointers.

use std::sync::Arc;

use gpureplay_edit::{Change, EditError, Launch, Subject, Taken, extract, inputs};
use gpureplay_format::layout::{PieceEntry, Region, TensorEntry};
use gpureplay_format::{Recording as View, encode::assemble};
use gpureplay_jobs::Jobs;
use gpureplay_library::{Bindings, Options, Recording, Tensor};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use crate::{code, shipped, with_code};

fn outputs(recording: &Recording, of: &Recording) -> Vec<Vec<(String, Tensor)>> {
    let values = inputs(of, 3).unwrap();
    let mut session = recording.session(Options::default()).unwrap();
    values
        .into_iter()
        .map(|bindings| {
            session.bind_all(bindings);
            session.run().unwrap();
            session.outputs().into_iter().collect()
        })
        .collect()
}

fn taken(
    ours: &Recording,
    theirs: &Recording,
    index: usize,
    map: &[&str],
) -> Result<Taken, EditError> {
    let jobs = Jobs::of(theirs).unwrap();
    let values = inputs(theirs, 1).unwrap().remove(0);
    let pairs: Vec<_> = map.iter().map(|pair| pair.parse().unwrap()).collect();
    Taken::new(ours, theirs, &jobs, index, &values, &pairs, None)
}

fn replaced(ours: &Recording, index: usize, taken: Taken) -> gpureplay_edit::Changed {
    let jobs = Jobs::of(ours).unwrap();
    let values = inputs(ours, 2).unwrap();
    let subject = Subject::new(ours, &jobs, index, &values, None).unwrap();
    subject.apply(&Change::from(Arc::new(taken))).unwrap()
}

#[test]
fn a_job_in_its_own_place_gives_the_identical_file() {
    let (saxpy, ..) = shipped("saxpy-g52");
    let same = replaced(&saxpy, 0, taken(&saxpy, &saxpy, 0, &[]).unwrap());
    assert!(same.bytes == saxpy.files().bytes && same.tried.different == 0);
    let (digits, jobs, bindings) = shipped("digits-g52");
    let alone = extract(&digits, &jobs, &bindings, &[11], None).unwrap();
    let alone = Recording::from_bytes(alone.bytes).unwrap();
    let jobs = Jobs::of(&alone).unwrap();
    let values = Bindings::new(alone.verified().recording(), &alone.files().path);
    let job = Taken::new(&digits, &alone, &jobs, 0, &values, &[], None).unwrap();
    assert!(replaced(&digits, 11, job).bytes == digits.files().bytes);
    let error = Taken::new(&saxpy, &alone, &jobs, 0, &values, &[], None).unwrap_err();
    assert!(error.to_string().starts_with("pointers: "), "{error}");
}

#[test]
fn a_job_of_another_driver_takes_the_place_and_sizes_come_along() {
    let (kbase, jobs, _) = shipped("saxpy-kbase-g52");
    let values = inputs(&kbase, 1).unwrap();
    let subject = Subject::new(&kbase, &jobs, 0, &values, None).unwrap();
    let local = Launch::over([1000, 1, 1], [125, 1, 1]).unwrap();
    let change = Change {
        launch: local,
        ..with_code(&subject, code(&subject))
    };
    let wide = subject.apply(&change).unwrap();
    let wide = Recording::from_bytes(wide.bytes).unwrap();
    let (saxpy, ..) = shipped("saxpy-g52");
    let values = inputs(&kbase, 1).unwrap().remove(0);
    let jobs = Jobs::of(&wide).unwrap();
    let job = Taken::new(&saxpy, &wide, &jobs, 0, &values, &[], None).unwrap();
    assert_eq!(job.launch(), local);
    let changed = replaced(&saxpy, 0, job);
    assert_eq!(changed.tried.different, 0);
    let edited = &changed.manifest.provenance["edited"];
    assert!(
        edited.contains("with SHA-256") && edited.contains("in its place"),
        "{edited}"
    );
    let new = Recording::from_bytes(changed.bytes).unwrap();
    let jobs = Jobs::of(&new).unwrap();
    assert_eq!(jobs.jobs[0].compute.as_ref().unwrap().local, [125, 1, 1]);
    assert_eq!(outputs(&new, &saxpy), outputs(&saxpy, &saxpy));
}

fn elsewhere(view: &View<'_>) -> Vec<u8> {
    const TO: u64 = 0x0d00_0000;
    let mut regions: Vec<Region> = view.regions().to_vec();
    let last = regions.last().copied().unwrap();
    let mut moved: Region = last;
    (moved.va, moved.pages) = (U64::new(TO), 0x20.into());
    moved.kind = regions.first().unwrap().kind;
    moved.access = regions.first().unwrap().access;
    regions.push(moved);
    let at = |va: u64| TO + (va - 0x0a00_6000);
    let mut pieces: Vec<PieceEntry> = view.piece_entries().to_vec();
    for piece in &mut pieces {
        piece.va = U64::new(at(piece.va.get()));
    }
    let tensors: Vec<TensorEntry> = view.tensors().to_vec();
    let mut strings = view.strings().to_vec();
    for tensor in &tensors {
        strings[tensor.name.get() as usize].make_ascii_uppercase();
    }
    assemble(
        view.header().platform(),
        &[
            view.identity().as_bytes(),
            regions.as_bytes(),
            view.segments().as_bytes(),
            view.action_entries().as_bytes(),
            tensors.as_bytes(),
            pieces.as_bytes(),
            view.axis_entries().as_bytes(),
            &strings,
            view.data(),
        ],
    )
}

#[test]
fn pointers_lead_to_tensors_by_name_and_to_what_the_user_says() {
    let (saxpy, _, bindings) = shipped("saxpy-g52");
    let copy = Recording::from_bytes(elsewhere(saxpy.verified().recording())).unwrap();
    let jobs = Jobs::of(&saxpy).unwrap();
    let table = Jobs::of(&copy).unwrap();
    let values = saxpy_values(&copy, &saxpy);
    let subject = Subject::new(&copy, &table, 0, &values, None).unwrap();
    let job = Taken::new(&copy, &saxpy, &jobs, 0, &bindings, &[], None).unwrap();
    let same = subject.apply(&Change::from(Arc::new(job))).unwrap();
    assert!(
        same.bytes == copy.files().bytes,
        "the same regions: the same job"
    );
    let pairs: Vec<_> = ["x=X", "y=Y", "out=Out"]
        .map(|pair| pair.parse().unwrap())
        .into();
    let job = Taken::new(&copy, &saxpy, &jobs, 0, &bindings, &pairs, None).unwrap();
    let changed = subject.apply(&Change::from(Arc::new(job))).unwrap();
    assert!(changed.tried.different > 0);
    let new = Recording::from_bytes(changed.bytes).unwrap();
    let mut session = new.session(Options::default()).unwrap();
    session.bind_all(saxpy_values(&new, &saxpy).remove(0));
    session.run().unwrap();
    let expected = outputs(&saxpy, &saxpy).remove(0).remove(0).1;
    assert_eq!(session.read("Out").unwrap(), expected);
    let pairs = ["x=0xd000000", "y=Y", "out=Out"];
    assert!(taken(&copy, &saxpy, 0, &pairs).is_ok());
    for wrong in ["x=nothing", "nothing=X", "x=0x10", "0x10=X"] {
        let error = taken(&copy, &saxpy, 0, &[wrong]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("there is no tensor or address"), "{text}");
    }
}

fn saxpy_values(copy: &Recording, saxpy: &Recording) -> Vec<Bindings> {
    let mut bindings = Bindings::new(copy.verified().recording(), &copy.files().path);
    for (name, file) in &saxpy.files().case().unwrap().inputs {
        let file = saxpy.files().directory.join(file);
        bindings
            .bind_file(copy.files(), &name.to_uppercase(), &file)
            .unwrap();
    }
    vec![bindings]
}

#[test]
fn what_does_not_fit_is_refused() {
    let (saxpy, ..) = shipped("saxpy-g52");
    let (digits, ..) = shipped("digits-g52");
    let error = taken(&saxpy, &digits, 19, &[]).unwrap_err();
    assert!(error.to_string().starts_with("pointers: "), "{error}");
    let job = Arc::new(taken(&saxpy, &saxpy, 0, &[]).unwrap());
    let jobs = Jobs::of(&saxpy).unwrap();
    let values = inputs(&saxpy, 1).unwrap();
    let subject = Subject::new(&saxpy, &jobs, 0, &values, None).unwrap();
    let mut change = Change::from(job);
    change.launch = Launch::over([1000, 1, 1], [10, 1, 1]).unwrap();
    let error = subject.try_out(&change).unwrap_err();
    assert!(error.to_string().contains("keeps its sizes"), "{error}");
}
