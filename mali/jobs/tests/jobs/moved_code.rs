// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moved code gives the same bytes on the model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpureplay_core::Gpu;
use gpureplay_format::{Access, PAGE_SIZE, RegionKind};
use gpureplay_library::{Device, ModelOptions, Recording, Session, device::Choice};
use mali_jobs::moved::{WINDOW, move_code};

/// Above all recordings.
const FAR: u64 = 1 << 36;

fn far(recording: &Recording) -> BTreeMap<u64, u64> {
    let regions = recording.verified().recording().regions().iter();
    let code = regions.filter(|it| Access(it.access).contains(Access::EXECUTE));
    let pages = code.flat_map(|it| (it.va.get()..it.end()).step_by(PAGE_SIZE as usize));
    let windows = pages.map(|va| va & !(WINDOW - 1));
    windows.map(|window| (window, window + FAR)).collect()
}

fn moved(recording: &Recording) -> Recording {
    let chains = recording.verified().chains().unwrap();
    Recording::from_bytes(move_code(chains, &far(recording)).unwrap()).unwrap()
}

type Outputs = Vec<(String, Vec<u8>)>;
type Words = Vec<(u64, u64)>;

fn run(recording: &Recording, inputs: &Recording) -> (Outputs, Words) {
    let id = recording.verified().recording().gpu_id();
    let device = Device::open(&Choice::Model(None), id, ModelOptions::default()).unwrap();
    let mut session = Session::on(recording.clone(), device);
    if let Some(case) = inputs.manifest().unwrap().cases.first() {
        for (name, file) in &case.inputs {
            let path = inputs.files().directory.join(file);
            session.bind_file(name, path).unwrap();
        }
    }
    let mut outputs = Vec::new();
    for _ in 0..2 {
        session.run().unwrap();
        let found = session.outputs().into_iter();
        outputs.extend(found.map(|(name, value)| (name, value.bytes().to_vec())));
    }
    outputs.sort();
    let mut words = Vec::new();
    for region in recording.verified().recording().regions() {
        // The model's threads may use any storage of a core.
        let kind = RegionKind::from_code(region.kind.into()).unwrap();
        if [RegionKind::Code, RegionKind::Scratch].contains(&kind) {
            continue;
        }
        for va in (region.va.get()..region.end()).step_by(PAGE_SIZE as usize) {
            let mut page = [0; PAGE_SIZE as usize];
            Gpu::read_memory(session.device().unwrap(), va, &mut page).unwrap();
            let found = page.as_chunks::<8>().0.iter().copied();
            words.extend((va..).step_by(8).zip(found.map(u64::from_le_bytes)));
        }
    }
    (outputs, words)
}

fn shipped() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let entries = std::fs::read_dir(all).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.join("recording.gpr").is_file())
        .collect();
    paths.sort();
    paths
}

#[test]
fn moved_code_computes_the_same_and_nothing_else_changes() {
    let mut compared = 0;
    for path in shipped() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Takes minutes on the model.
        if name.starts_with("train-clblast") {
            continue;
        }
        let recording = Recording::open(&path).unwrap();
        if recording.verified().chains().is_err() {
            continue;
        }
        let there = moved(&recording);
        // The manifest would join layers.
        let bytes = std::fs::read(path.join("recording.gpr")).unwrap();
        let here = Recording::from_bytes(bytes).unwrap();
        let code = |recording: &Recording, va: u64| {
            let view = recording.verified().recording();
            let region = view.region_of(va, 1);
            region.is_some_and(|it| Access(it.access).contains(Access::EXECUTE))
        };
        let (before, words) = run(&here, &recording);
        let (after, new) = run(&there, &recording);
        assert!(before == after, "{name}: outputs differ");
        assert!(!before.is_empty(), "{name}");
        let mut pointers = 0;
        for ((at, old), (to, new)) in words.into_iter().zip(new) {
            assert_eq!(at, to);
            if old != new {
                assert_eq!(new, old + FAR, "{name} at {at:#x}");
                assert!(code(&recording, old & !15) && code(&there, new & !15));
                pointers += 1;
            }
        }
        assert!(pointers > 0, "{name}: no pointer has changed");
        compared += 1;
    }
    assert!(compared >= 13, "{compared}");
}

#[test]
fn code_stays_without_a_move_and_goes_nowhere_else() {
    let path = shipped().into_iter().find(|it| it.ends_with("digits-g52"));
    let recording = Recording::open(path.unwrap()).unwrap();
    let chains = recording.verified().chains().unwrap();
    let here = move_code(chains, &BTreeMap::new()).unwrap();
    let same = Recording::from_bytes(here).unwrap();
    assert_eq!(
        same.verified().recording().regions().len(),
        recording.verified().recording().regions().len()
    );
    let windows = far(&recording).into_keys();
    let beyond = windows.map(|window| (window, 1 << 60)).collect();
    let error = move_code(chains, &beyond);
    assert!(error.is_err_and(|error| error.to_string().contains("rule")));
}
