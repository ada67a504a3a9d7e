// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two recordings from silicon import and verify.

use std::path::PathBuf;

use gpureplay_core::Limits;
use gpureplay_format::{Opcode, Recording, SegmentKind, TensorKind};
use gpureplay_import::{Diagnosis, Options, built_in, convert, read_directory};
use gpureplay_tensors::{Form, Stated};
use mali_drive::verify;

fn import(name: &str, most_bytes: usize, chains: usize, jobs: usize, defects: &[&str]) {
    let Some(directory) = crate::common::directory(name) else {
        return;
    };
    let original = read_directory(&directory).unwrap();
    let names: Vec<_> = original.diagnoses.iter().map(Diagnosis::name).collect();
    assert_eq!(names, defects);
    let plain = convert(&original, &Options::default()).unwrap();
    let description = built_in(plain.fingerprint).unwrap();
    assert!(
        description.is_some(),
        "no description for {:016x}",
        plain.fingerprint
    );
    let options = Options {
        description,
        ..Options::default()
    };
    let described = convert(&original, &options).unwrap();
    for imported in [plain, described] {
        assert_eq!(imported.diagnoses, []);
        assert_eq!(imported.chains.len(), chains);
        let found: usize = imported.chains.iter().map(|c| c.jobs.len()).sum();
        assert_eq!(found, jobs);
        // The dump was taken after the run: silicon ended all jobs with DONE.
        let done =
            |c: &gpureplay_import::Chain| c.jobs.iter().all(|j| j.header.exception_status() == 1);
        assert!(imported.chains.iter().all(done));
        let size = imported.recording.len();
        assert!(size <= most_bytes, "{name}: {size} bytes");
        eprintln!("{name}: {size} bytes");
        let recording = Recording::parse(&imported.recording).unwrap();
        let verified = verify(&recording, &Limits::DEFAULT);
        assert!(verified.is_ok(), "{:?}", verified.err());
        let segments = recording.segments().iter();
        let submits: u32 = segments.map(|s| recording.count(s, Opcode::Submit)).sum();
        assert_eq!(submits as usize, chains);
        let run = |s: &&gpureplay_format::layout::Segment| s.kind == SegmentKind::Run.code();
        assert!(recording.segments().iter().any(|s| run(&s)));
    }
}

#[test]
fn ranges_take_what_is_stated() {
    let Some(directory) = crate::common::directory("mnist") else {
        return;
    };
    let original = read_directory(&directory).unwrap();
    let plain = convert(&original, &Options::default()).unwrap();
    let of = |wanted: TensorKind| {
        let ranges = plain.ranges.iter();
        let ranges = ranges.filter(move |(kind, ..)| *kind == wanted);
        ranges.map(|(_, name, form)| (name.as_str(), form))
    };
    let outputs: Vec<_> = of(TensorKind::Output).collect();
    let [("output", form)] = outputs[..] else {
        panic!("{outputs:?}");
    };
    assert_eq!(of(TensorKind::Input).next().unwrap().0, "input");
    let (bytes, extent) = (form.bytes().unwrap(), form.shape[0]);
    let shape = Form {
        dtype: form.dtype,
        shape: vec![1, extent],
    };
    let stated = |form| Options {
        stated: Stated {
            rename: [("output".to_owned(), "scores".to_owned())].into(),
            forms: [("scores".to_owned(), form)].into(),
        },
        ..Options::default()
    };
    let imported = convert(&original, &stated(shape.clone())).unwrap();
    let scores = (TensorKind::Output, "scores".to_owned(), shape.clone());
    assert!(imported.ranges.contains(&scores), "{:?}", imported.ranges);
    let recording = Recording::parse(&imported.recording).unwrap();
    let mut tensors = recording.tensors().iter();
    let found = tensors.find(|tensor| recording.name(tensor.name.get()) == "scores");
    let extents = recording
        .shape(found.unwrap())
        .iter()
        .map(|extent| extent.get());
    assert_eq!(extents.collect::<Vec<_>>(), shape.shape);

    let large = Form {
        shape: vec![2, extent],
        ..shape
    };
    let error = convert(&original, &stated(large)).unwrap_err().to_string();
    assert!(
        error.contains(&format!("'output' has {bytes} bytes")),
        "{error}"
    );
}

#[test]
fn mnist() {
    import("mnist", 30_000, 23, 23, &[]);
}

#[test]
fn alexnet() {
    let defects = ["region-not-mapped", "regions-overlap"];
    import("alexnet", 142_000, 60, 61, &defects);
}

#[test]
fn missing_files_are_named() {
    let error = read_directory(&PathBuf::from("/nonexistent")).unwrap_err();
    assert!(error.to_string().contains("gr_io_history"));
}
