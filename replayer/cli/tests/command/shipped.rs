// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped recordings, run again and again with alternating inputs in one session: no run remembers another.

use std::path::{Path, PathBuf};

use gpureplay_core::mali::verify;
use gpureplay_core::{Limits, Options, Session, Tensors, Workspace};
use gpureplay_format::{Recording, TensorKind};
use gpureplay_io::read_npy;
use gpureplay_on_model::OnModel;
use mali_model::Profile;

/// Runs of one session; `GPUREPLAY_RUNS` sets another number.
const RUNS: usize = 100;

struct Bound {
    values: Vec<Option<Vec<u8>>>,
    outputs: Vec<Option<Vec<u8>>>,
}

impl Tensors for Bound {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.values[tensor as usize].as_deref()
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        self.outputs[tensor as usize].as_deref_mut()
    }
}

/// The inputs of a case of the manifest, by tensor.
fn bind(recording: &Recording<'_>, folder: &Path, manifest: &toml::Table, case: usize) -> Bound {
    let files = |table: &toml::Value| -> Vec<(String, PathBuf)> {
        let entries = table.as_table().unwrap().iter();
        entries
            .map(|(name, file)| (name.clone(), folder.join(file.as_str().unwrap())))
            .collect()
    };
    let mut bound = Bound {
        values: Vec::new(),
        outputs: Vec::new(),
    };
    for tensor in recording.tensors() {
        let size = recording.tensor_bytes(tensor).unwrap() as usize;
        bound.values.push(None);
        bound
            .outputs
            .push((tensor.kind == TensorKind::Output.code()).then(|| vec![0; size]));
    }
    let weights = manifest.get("weights").map(&files).unwrap_or_default();
    let inputs = files(&manifest["case"].as_array().unwrap()[case]["inputs"]);
    for (name, file) in weights.into_iter().chain(inputs) {
        let index = recording.tensor_named(&name).unwrap().0 as usize;
        bound.values[index] = Some(read_npy(&file).unwrap().into_bytes());
    }
    bound
}

/// The shipped recordings: directory, bytes, manifest.
fn shipped() -> Vec<(PathBuf, Vec<u8>, toml::Table)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let folders = std::fs::read_dir(root).unwrap();
    folders
        .filter_map(|entry| {
            let folder = entry.unwrap().path();
            let bytes = std::fs::read(folder.join("recording.gpr")).ok()?;
            let manifest = std::fs::read_to_string(folder.join("manifest.toml")).unwrap();
            Some((folder, bytes, manifest.parse().unwrap()))
        })
        .collect()
}

#[test]
fn runs_do_not_remember_each_other() {
    let runs = std::env::var("GPUREPLAY_RUNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let mut tried = 0;
    for (folder, bytes, manifest) in shipped() {
        let cases = manifest
            .get("case")
            .and_then(|cases| cases.as_array())
            .map_or(0, Vec::len);
        if cases < 2 {
            continue;
        }
        let recording = Recording::parse(&bytes).unwrap();
        let verified = verify(&recording, &Limits::DEFAULT).unwrap();
        // A run that goes on from the last one does remember it: that is tested with sessions.
        let mut tensors = recording.tensors().iter();
        if tensors.any(|tensor| tensor.kind == TensorKind::State.code()) {
            continue;
        }
        let product = (recording.gpu_id() >> 16) as u16;
        let gpu = OnModel::new(
            Profile::by_product(product).unwrap(),
            mali_model::Options::default(),
        );
        let mut workspace = Workspace::new();
        let mut bound = [0, 1].map(|case| bind(&recording, &folder, &manifest, case));
        let mut session = Session::open(
            gpu.unwrap(),
            verified,
            &mut workspace,
            Options::default(),
            &mut bound[0],
        )
        .unwrap();
        let mut first: [Option<Vec<Option<Vec<u8>>>>; 2] = [None, None];
        for run in 0..runs.unwrap_or(RUNS) {
            let which = run % 2;
            session.run(&mut bound[which]).unwrap();
            let outputs = first[which].get_or_insert_with(|| bound[which].outputs.clone());
            assert_eq!(
                *outputs,
                bound[which].outputs,
                "{} run {run}",
                folder.display()
            );
        }
        assert_ne!(
            first[0],
            first[1],
            "{}: two inputs, one answer",
            folder.display()
        );
        session.finish().unwrap();
        tried += 1;
    }
    println!("{tried} recordings");
}

/// What is known about where a recording comes from.
const KNOWN: [&str; 7] = [
    "app", "driver", "gpu", "kernel", "recorder", "runtime", "sha256",
];

#[test]
fn provenance_of_shipped_recordings_is_complete() {
    let mut checked = 0;
    for (folder, bytes, manifest) in shipped() {
        let provenance = manifest["provenance"].as_table().unwrap();
        let info = std::process::Command::new(env!("CARGO_BIN_EXE_gpureplay"))
            .arg("info")
            .arg(&folder)
            .output()
            .unwrap();
        let info = String::from_utf8(info.stdout).unwrap();
        for key in KNOWN {
            let value = provenance[key].as_str().unwrap();
            assert!(!value.is_empty(), "{}: {key}", folder.display());
            assert!(info.contains(&format!("{key}: {value}")), "{info}");
        }
        assert!(manifest["command"].as_str().unwrap().starts_with("cargo"));
        let sum = gpureplay_library::weights::sha256(&bytes);
        assert_eq!(provenance["sha256"].as_str(), Some(sum.as_str()));
        let recording = Recording::parse(&bytes).unwrap();
        let gpu = mali_regs::GpuId(recording.gpu_id()).to_string();
        assert_eq!(provenance["gpu"].as_str(), Some(gpu.as_str()));
        checked += 1;
    }
    assert!(checked >= 6);
}
