// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shipped recordings, repeated: no run remembers another.

use std::path::Path;

use gpureplay_format::TensorKind;
use gpureplay_library::{Options, Recording, TensorInfo};

use crate::start::{Says, said};

/// `GPUREPLAY_RUNS` sets another number.
const RUNS: usize = 100;

fn manifest(folder: &Path) -> toml::Table {
    let text = std::fs::read_to_string(folder.join("manifest.toml")).unwrap();
    text.parse().unwrap()
}

#[test]
fn runs_do_not_remember_each_other() {
    let runs = std::env::var("GPUREPLAY_RUNS");
    let runs = runs.ok().and_then(|text| text.parse().ok());
    let mut tried = 0;
    for folder in gpureplay_kit::all_shipped() {
        let recording = Recording::open(&folder).unwrap();
        let cases = &recording.manifest().unwrap().cases;
        // Tests of sessions cover states.
        let state = |tensor: &TensorInfo| tensor.kind == TensorKind::State;
        if cases.len() < 2 || recording.tensors().iter().any(state) {
            continue;
        }
        let mut session = recording.session(Options::default()).unwrap();
        let mut first = [None, None];
        for run in 0..runs.unwrap_or(RUNS) {
            let case = &cases[run % 2];
            for (name, file) in &case.inputs {
                session.bind_file(name, folder.join(file)).unwrap();
            }
            session.run().unwrap();
            let outputs: Vec<_> = case
                .expected
                .keys()
                .map(|name| session.read(name).unwrap())
                .collect();
            let known = first[run % 2].get_or_insert_with(|| outputs.clone());
            assert_eq!(*known, outputs, "{} run {run}", folder.display());
        }
        assert_ne!(
            first[0],
            first[1],
            "{}: two inputs, one answer",
            folder.display()
        );
        tried += 1;
    }
    println!("{tried} recordings");
    assert!(tried >= 4);
}

const KNOWN: [&str; 7] = [
    "app", "driver", "gpu", "kernel", "recorder", "runtime", "sha256",
];

#[test]
fn provenance_of_shipped_recordings_is_complete() {
    let mut checked = 0;
    for folder in gpureplay_kit::all_shipped() {
        let (bytes, manifest) = (
            std::fs::read(folder.join("recording.gpr")).unwrap(),
            manifest(&folder),
        );
        let provenance = manifest["provenance"].as_table().unwrap();
        let (_, info) = said(&format!("info {}", folder.display()));
        for key in KNOWN {
            let value = provenance[key].as_str().unwrap();
            assert!(!value.is_empty(), "{}: {key}", folder.display());
            info.says(&format!("{key}: {value}"));
        }
        let command = manifest["command"].as_str().unwrap();
        let commands = ["cargo ", "gpureplay record "];
        assert!(commands.iter().any(|it| command.contains(it)), "{command}");
        let sum = gpureplay_library::weights::sha256(&bytes);
        assert_eq!(provenance["sha256"].as_str(), Some(sum.as_str()));
        let recording = gpureplay_format::Recording::parse(&bytes).unwrap();
        let gpu = mali_facts::registers::GpuId(recording.gpu_id()).to_string();
        assert_eq!(provenance["gpu"].as_str(), Some(gpu.as_str()));
        checked += 1;
    }
    assert!(checked >= 6);
}
