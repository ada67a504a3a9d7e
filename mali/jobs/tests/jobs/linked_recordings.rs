// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shipped recordings linked, joined and split.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Wrapper};
use gpureplay_format::{PAGE_SIZE, RegionKind};
use gpureplay_library::{Device, Recording, Session};
use gpureplay_on_model::OnModel;
use mali_facts::{Draw, Job, JobHeader, follow, job};
use mali_jobs::link::{MOST_JOBS, link, split, whole};
use mali_jobs::walk::{Full, submissions};

const SHIPPED: [&str; 8] = [
    "acl-conv-g52",
    "acl-gemm-g52",
    "digits-g52",
    "generate-g52",
    "lenet-g52",
    "saxpy-g52",
    "saxpy-kbase-g52",
    "train-digits-g52",
];

fn folder(name: &str) -> PathBuf {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    recordings.join(name)
}

fn as_recorded(name: &str) -> Option<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/as-recorded");
    let bytes = std::fs::read(folder.join(format!("{name}.gpr"))).ok()?;
    Some(Recording::from_bytes(bytes).unwrap())
}

fn plain(name: &str) -> Recording {
    if let Some(recorded) = as_recorded(name) {
        return recorded;
    }
    let recording = Recording::open(folder(name)).unwrap();
    match split(recording.verified().chains().unwrap()).unwrap() {
        Some(bytes) => Recording::from_bytes(bytes).unwrap(),
        None => recording,
    }
}

fn linked(recording: &Recording, most_jobs: u32) -> Recording {
    let bytes = &recording.files().bytes;
    let linked = link(bytes, recording.verified().chains().unwrap(), most_jobs).unwrap();
    Recording::from_bytes(linked.bytes).unwrap()
}

fn chains(recording: &Recording) -> Vec<Vec<Job>> {
    let mut out = Vec::new();
    submissions(recording.verified().chains().unwrap(), |submission| {
        let chain = follow(submission.memory, submission.head);
        out.push(chain.jobs(submission.memory).collect());
        Ok::<(), Full>(())
    })
    .unwrap();
    out
}

struct WithoutWaits(OnModel);

impl Wrapper for WithoutWaits {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.0
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        let mut at = chain.head;
        while at != 0 {
            let mut bytes = [0; JobHeader::SIZE];
            self.0.read_memory(at, &mut bytes)?;
            let header = JobHeader::from_bytes(&bytes)
                .with("Barrier", 0)
                .with("Dependency 1", 0)
                .with("Dependency 2", 0);
            self.0.write_memory(at, &header.to_bytes())?;
            at = header.next();
        }
        self.0.before_chain(chain)
    }
}

fn model(recording: &Recording, seed: u64) -> OnModel {
    let id = mali_facts::registers::GpuId(recording.verified().recording().gpu_id());
    let profile = mali_model::Profile::by_product(id.product()).unwrap();
    // More threads race, and follow the host's clock.
    let options = mali_model::Options {
        threads: 1,
        seed,
        ..mali_model::Options::default()
    };
    OnModel::new(profile, options).unwrap()
}

struct Left {
    outputs: Vec<(String, Vec<u8>)>,
    pages: Vec<(u64, RegionKind, Vec<u8>)>,
}

fn run(
    recording: &Recording,
    inputs: &Recording,
    case: usize,
    device: Device,
) -> Result<Left, gpureplay_library::Error> {
    let mut session = Session::on(recording.clone(), device);
    let manifest = inputs.manifest().unwrap();
    if let Some(case) = manifest.cases.get(case) {
        for (name, file) in &case.inputs {
            session
                .bind_file(name, inputs.files().directory.join(file))
                .unwrap();
        }
    }
    session.run()?;
    let mut outputs: Vec<_> = session.outputs().into_iter().collect();
    outputs.sort_by(|a, b| a.0.cmp(&b.0));
    let outputs = outputs
        .into_iter()
        .map(|(name, value)| (name, value.bytes().to_vec()))
        .collect();
    let mut pages = Vec::new();
    for region in recording.verified().recording().regions() {
        let kind = RegionKind::from_code(region.kind.into()).unwrap();
        if kind == RegionKind::Scratch {
            continue;
        }
        for va in (region.va.get()..region.end()).step_by(PAGE_SIZE as usize) {
            let mut page = vec![0; PAGE_SIZE as usize];
            Gpu::read_memory(session.device().unwrap(), va, &mut page).unwrap();
            pages.push((va, kind, page));
        }
    }
    Ok(Left { outputs, pages })
}

fn named(name: &str) -> Recording {
    Recording::open(folder(name)).unwrap()
}

fn header_pages(recording: &Recording) -> usize {
    let jobs = chains(recording).into_iter().flatten();
    let pages: BTreeSet<u64> = jobs.map(|job| job.address / u64::from(PAGE_SIZE)).collect();
    pages.len()
}

/// Only pages with headers may differ, and two besides.
fn same(what: &str, headers: usize, first: &Left, second: &Left) {
    assert_eq!(first.outputs, second.outputs, "{what}");
    let mut others = Vec::new();
    for (va, kind, page) in &first.pages {
        let found = second.pages.iter().find(|(at, _, _)| at == va).unwrap();
        if *page != found.2 {
            others.push(*va);
            assert_eq!(*kind, RegionKind::Descriptors, "{what}: {va:#x}");
        }
    }
    assert!(others.len() <= headers + 2, "{what}: {others:x?}");
}

#[test]
fn shipped_recordings_compute_the_same_when_they_are_linked() {
    for name in SHIPPED {
        let shipped = named(name);
        let before = plain(name);
        let after = linked(&before, MOST_JOBS);
        let (alone, together) = (chains(&before), chains(&after));
        println!("{name}: {} chains, {} linked", alone.len(), together.len());
        assert!(together.iter().all(|jobs| jobs.len() <= MOST_JOBS as usize));
        // One for each layer, and one for set-up if it has jobs.
        let layers = before.layers().len();
        assert!(together.len() <= layers + 1, "{name}: {}", together.len());
        let most = if name.starts_with("train") { 2 } else { 4 };
        for (case, seed) in [(0, 0), (0, 1), (1, 0), (1, 2)].into_iter().take(most) {
            let what = format!("{name}, case {case}, seed {seed}");
            let device = |of: &Recording| Device::custom(Box::new(model(of, seed)), "model");
            let first = run(&before, &shipped, case, device(&before)).unwrap();
            let second = run(&after, &shipped, case, device(&after)).unwrap();
            let headers = header_pages(&after);
            same(&what, headers, &first, &second);
            if let Some(bytes) = whole(after.verified().chains().unwrap(), MOST_JOBS).unwrap() {
                let all = Recording::from_bytes(bytes).unwrap();
                let third = run(&all, &shipped, case, device(&all)).unwrap();
                same(&what, headers, &first, &third);
            }
        }
        assert_eq!(
            linked(&after, MOST_JOBS).files().bytes,
            after.files().bytes,
            "{name}"
        );
        let apart = split(after.verified().chains().unwrap()).unwrap();
        if let Some(bytes) = apart {
            let apart = Recording::from_bytes(bytes).unwrap();
            assert_eq!(chains(&apart).len(), alone.len(), "{name}");
            let device = |of: &Recording| Device::custom(Box::new(model(of, 0)), "model");
            let first = run(&before, &shipped, 0, device(&before)).unwrap();
            same(
                name,
                header_pages(&apart),
                &first,
                &run(&apart, &shipped, 0, device(&apart)).unwrap(),
            );
        }
    }
}

#[test]
fn a_run_of_digits_is_one_chain() {
    let after = linked(&plain("digits-g52"), MOST_JOBS);
    assert_eq!(after.layers().len(), 7);
    let all = Recording::from_bytes(
        whole(after.verified().chains().unwrap(), MOST_JOBS)
            .unwrap()
            .unwrap(),
    )
    .unwrap();
    let jobs: Vec<usize> = chains(&all).iter().map(Vec::len).collect();
    assert_eq!(jobs, [8, 12]);
}

#[test]
fn chains_have_as_many_jobs_as_they_may() {
    let before = plain("digits-g52");
    let after = linked(&before, 4);
    let setup: Vec<usize> = chains(&after).iter().map(Vec::len).take(2).collect();
    assert_eq!(setup, [4, 4]);
    let all = Recording::from_bytes(
        whole(after.verified().chains().unwrap(), 5)
            .unwrap()
            .unwrap(),
    )
    .unwrap();
    assert!(chains(&all).iter().skip(2).all(|jobs| jobs.len() <= 5));
    assert_eq!(
        linked(&before, 1).verified().recording().segments().len(),
        8
    );
    assert!(
        chains(&linked(&before, 1))
            .iter()
            .all(|jobs| jobs.len() == 1)
    );
}

/// The model may reorder jobs that do not wait.
#[test]
fn a_link_without_its_barrier_is_seen() {
    for name in ["acl-gemm-g52", "digits-g52"] {
        let shipped = named(name);
        let before = plain(name);
        let after = linked(&before, MOST_JOBS);
        let right = Device::custom(Box::new(model(&before, 0)), "model");
        let right = run(&before, &shipped, 0, right).unwrap().outputs;
        let mut wrong = 0;
        for seed in 1..=4 {
            let device = WithoutWaits(model(&after, seed));
            let found = run(
                &after,
                &shipped,
                0,
                Device::custom(Box::new(device), "model"),
            );
            wrong += u32::from(found.is_err() || found.is_ok_and(|left| left.outputs != right));
        }
        assert!(
            wrong > 0,
            "{name}: no order of the jobs gives another result"
        );
    }
}

#[test]
fn shipped_recordings_are_linked() {
    for name in ["acl-gemm-g52", "digits-g52"] {
        let recorded = as_recorded(name).unwrap();
        let linked = linked(&recorded, MOST_JOBS);
        assert!(chains(&linked).len() < chains(&recorded).len(), "{name}");
        assert_eq!(linked.files().bytes, named(name).files().bytes, "{name}");
    }
}

fn linked_folder(folder_of: &Path, shipped: &Recording) -> Recording {
    let linked = link(
        &shipped.files().bytes,
        shipped.verified().chains().unwrap(),
        MOST_JOBS,
    )
    .unwrap();
    let mut manifest = shipped.manifest().unwrap().clone();
    for job in &mut manifest.jobs {
        let place = linked.places[job.submission];
        job.submission = place.submission as usize;
        job.job = Some(place.first as usize);
    }
    manifest.provenance.remove("sha256");
    std::fs::write(folder_of.join("recording.gpr"), &linked.bytes).unwrap();
    std::fs::write(folder_of.join("manifest.toml"), manifest.to_text().unwrap()).unwrap();
    Recording::open(folder_of).unwrap()
}

#[test]
fn a_session_joins_layers_where_nobody_looks_between_them() {
    let shipped = named("digits-g52").apart().unwrap();
    let file = folder("digits-g52").join("inputs/3.npy");
    let temporary = tempfile::tempdir().unwrap();
    let linked = linked_folder(temporary.path(), &shipped);
    let session = |recording: &Recording| {
        let device = Device::custom(Box::new(model(recording, 0)), "model");
        let mut session = Session::on(recording.clone(), device);
        session.bind_file("input", &file).unwrap();
        session
    };
    let mut recorded = session(&shipped);
    recorded.keep("conv2").unwrap();
    recorded.run().unwrap();
    assert_eq!(recorded.timing().chains, 12);
    let right = recorded.read("probabilities").unwrap();

    let mut joined = session(&linked);
    joined.prepare().unwrap();
    for _ in 0..3 {
        joined.run().unwrap();
        assert_eq!(joined.timing().chains, 1);
        assert_eq!(joined.timing().registers, 4, "one submission");
        assert_eq!(joined.read("probabilities").unwrap(), right);
    }
    joined.run_layers(0..3).unwrap();
    assert_eq!(joined.timing().chains, 3);
    joined.run_layers(3..7).unwrap();
    assert_eq!(joined.read("probabilities").unwrap(), right);
    joined.run().unwrap();
    assert_eq!(joined.timing().chains, 7);
    assert_eq!(joined.read("probabilities").unwrap(), right);
    let mut kept = session(&linked);
    kept.keep("conv2").unwrap();
    kept.run().unwrap();
    assert_eq!(kept.timing().chains, 7);
    assert_eq!(kept.read("conv2").unwrap(), recorded.read("conv2").unwrap());
    assert_eq!(kept.read("probabilities").unwrap(), right);

    let apart = linked.apart().unwrap();
    assert_eq!(apart.recorded().files().bytes, linked.files().bytes);
    let named = |recording: &Recording| -> Vec<(usize, String)> {
        let jobs = recording.manifest().unwrap().jobs.iter();
        jobs.map(|job| (job.submission, job.kernel.clone()))
            .collect()
    };
    assert_eq!(named(&apart), named(&shipped));
    let mut alone = session(&apart);
    alone.run().unwrap();
    assert_eq!(alone.timing().chains, 12);
    assert_eq!(alone.read("probabilities").unwrap(), right);
}

struct Disturbed {
    gpu: OnModel,
    job: u64,
    how: Disturbance,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    Type,
    Shader,
    Status,
}

impl Wrapper for Disturbed {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.gpu
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        match self.how {
            Disturbance::Type => {
                let mut bytes = [0; JobHeader::SIZE];
                self.gpu.read_memory(self.job, &mut bytes)?;
                let header = JobHeader::from_bytes(&bytes).with("Type", 0x7f);
                self.gpu.write_memory(self.job, &header.to_bytes())?;
            }
            Disturbance::Shader => {
                let state = Draw::LAYOUT.offset_of("State").unwrap();
                let at = self.job + job::COMPUTE_DRAW + state;
                self.gpu
                    .write_memory(at, &0x7f_0000_0000u64.to_le_bytes())?;
            }
            Disturbance::Status => {}
        }
        self.gpu.before_chain(chain)
    }

    fn after_chain(&mut self, chain: &Chain, result: Result<(), ErrorKind>) {
        if self.how == Disturbance::Status {
            self.gpu.write_memory(self.job, &[0; 4]).unwrap();
        }
        self.gpu.after_chain(chain, result);
    }
}

#[test]
fn a_fault_in_a_linked_chain_names_its_job() {
    let shipped = named("digits-g52");
    let linked = linked(&plain("digits-g52"), MOST_JOBS);
    let bytes = whole(linked.verified().chains().unwrap(), MOST_JOBS)
        .unwrap()
        .unwrap();
    let all = Recording::from_bytes(bytes).unwrap();
    let jobs = chains(&all).pop().unwrap();
    assert_eq!(jobs.len(), 12);
    for wrong in &jobs {
        for how in [Disturbance::Type, Disturbance::Shader, Disturbance::Status] {
            let device = Disturbed {
                gpu: model(&all, 0),
                job: wrong.address,
                how,
            };
            let device = Device::custom(Box::new(device), "model");
            let error = run(&all, &shipped, 0, device).err().unwrap().to_string();
            let named = |job: &Job| error.contains(&format!("job {:#x} ", job.address));
            assert!(named(wrong), "{how:?} of {:#x}: {error}", wrong.address);
            let others = jobs.iter().filter(|job| job.address != wrong.address);
            assert_eq!(others.filter(|job| named(job)).count(), 0, "{error}");
        }
    }
}
