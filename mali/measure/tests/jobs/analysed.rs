// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analyses agree with the model and keep outputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpureplay_analysis::Collector;
use gpureplay_jobs::Jobs;
use gpureplay_jobs::analysis::What;
use gpureplay_jobs::analysis::analyse::analyse;
use gpureplay_jobs::analysis::report::{Report, Verdict};
use gpureplay_jobs::measure::Watch;
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Error, ModelOptions, Recording, Session};
use mali_isa::Message;
use mali_model::{JobReport, Observer};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings")
}

fn options(threads: usize) -> ModelOptions {
    ModelOptions {
        threads: Some(threads),
        ..ModelOptions::default()
    }
}

fn bare(recording: &Recording) -> Vec<JobReport> {
    let watch = Arc::new(Watch::default());
    let observer: Arc<dyn Observer> = watch.clone();
    let gpu = recording.verified().recording().gpu_id();
    let device =
        Device::open_observed(&Choice::Model(None), gpu, options(2), Some(observer)).unwrap();
    let mut session = Session::on(recording.clone(), device);
    session.bind_case().unwrap();
    session.run().unwrap();
    session.close().unwrap();
    watch.take().into_iter().map(|job| job.report).collect()
}

fn analysed(recording: &Recording, what: &str, threads: usize) -> Report {
    let jobs = Jobs::of(recording).unwrap();
    let all: Vec<usize> = (0..jobs.jobs.len()).collect();
    let what: What = what.parse().unwrap();
    let report = analyse(
        recording,
        &jobs,
        &all,
        what,
        options(threads),
        Session::bind_case,
    );
    report.map_err(|error: Error| error.to_string()).unwrap()
}

fn compare(name: &str, report: &Report, bare: &[JobReport]) {
    assert_eq!(report.ended_early, None, "{name}");
    assert_eq!(report.jobs.len(), bare.len(), "{name}");
    let mut compared = 0;
    for (job, bare) in report.jobs.iter().zip(bare) {
        let at = format!("{name} job {}", job.index);
        assert_eq!(job.address, bare.address, "{at}");
        let Some(counts) = bare.compute.as_ref().and_then(|it| it.statistics) else {
            continue;
        };
        assert!(job.incomplete.is_empty(), "{at}: {:?}", job.incomplete);
        let sum = |of: &dyn Fn(&gpureplay_jobs::analysis::report::Clause) -> u64| -> u64 {
            job.clauses.iter().map(of).sum()
        };
        assert_eq!(sum(&|c| c.lanes * u64::from(c.fma)), counts.fma, "{at}");
        assert_eq!(sum(&|c| c.lanes * u64::from(c.add)), counts.add, "{at}");
        let messages = sum(&|c| c.lanes * u64::from(c.messages));
        assert_eq!(messages, counts.messages(), "{at}");
        // A block of Valhall names only its first message's kind.
        let one_each = job.clauses.iter().all(|clause| clause.messages < 2);
        let by_kind: BTreeMap<_, _> = counts.messages_by_kind().collect();
        for kind in Message::ALL.into_iter().filter(|_| one_each) {
            let of = |c: &gpureplay_jobs::analysis::report::Clause| match c.message.as_deref() {
                Some(message) if message == kind.name() => c.lanes,
                _ => 0,
            };
            let counted = by_kind.get(kind.name()).copied().unwrap_or(0);
            assert_eq!(sum(&of), counted, "{at} {}", kind.name());
        }
        let bytes = counts.bytes_read + counts.bytes_written;
        let memory = sum(&|c| c.memory.map_or(0, |memory| memory.read + memory.written));
        assert_eq!(memory + job.thread_storage_bytes, bytes, "{at}");
        let heat: u64 = job.heat.iter().map(|area| area.read + area.written).sum();
        assert_eq!(
            heat + job.thread_storage_bytes + job.group_storage_bytes,
            bytes,
            "{at}: by area"
        );
        if job.pages_left_out == 0 {
            let pages: u64 = job.pages.iter().map(|page| page.read + page.written).sum();
            assert_eq!(
                pages + job.thread_storage_bytes + job.group_storage_bytes,
                bytes,
                "{at}: by page"
            );
        }
        for area in &job.heat {
            let cells: u64 = area
                .cells
                .iter()
                .map(|[read, written]| read + written)
                .sum();
            assert_eq!(cells, area.read + area.written, "{at} {}", area.name);
        }
        compared += 1;
    }
    assert!(compared > 0, "{name}");
}

#[test]
fn counts_times_instructions_are_the_totals_of_every_shader_of_every_recording() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let recording = Recording::open(&path).unwrap();
        let name = recording.name();
        let bare = bare(&recording);
        let report = analysed(&recording, "counts,divergence,heat,lines", 2);
        compare(&name, &report, &bare);
        seen += 1;
    }
    assert!(seen >= 6, "{seen}");
}

#[test]
fn results_do_not_depend_on_threads() {
    for (name, what) in [
        ("digits-g52", "all"),
        ("lenet-g52", "all"),
        ("acl-gemm-g52", "all"),
    ] {
        let recording = Recording::open(folder().join(name)).unwrap();
        let one = analysed(&recording, what, 1);
        for threads in [2, 5] {
            let other = analysed(&recording, what, threads);
            assert!(one == other, "{name} with {threads} threads");
        }
    }
}

#[test]
fn networks_read_nothing_that_nobody_wrote() {
    for name in [
        "digits-g52",
        "lenet-g52",
        "acl-conv-g52",
        "acl-gemm-g52",
        "saxpy-g52",
    ] {
        let recording = Recording::open(folder().join(name)).unwrap();
        let report = analysed(&recording, "uninit", 2);
        assert_eq!(report.verdict("uninit"), Some(Verdict::Clean), "{name}");
        assert!(
            report.jobs.iter().all(|job| job.uninit.is_empty()),
            "{name}"
        );
    }
}

/// Stacks lie at the same places, unshared.
#[test]
fn networks_do_not_race() {
    for name in ["digits-g52", "lenet-g52"] {
        let recording = Recording::open(folder().join(name)).unwrap();
        let report = analysed(&recording, "races", 2);
        assert!(
            report.jobs.iter().any(|job| job.thread_storage_bytes > 0),
            "{name} has no stacks"
        );
        assert_eq!(report.verdict("races"), Some(Verdict::Clean), "{name}");
    }
}

#[test]
fn outputs_are_the_same_bits() {
    for name in ["lenet-g52", "acl-conv-g52", "saxpy-g52"] {
        let recording = Recording::open(folder().join(name)).unwrap();
        let view = recording.verified().recording();
        let outputs = |observer: Option<Arc<dyn Observer>>| {
            let device =
                Device::open_observed(&Choice::Model(None), view.gpu_id(), options(2), observer);
            let mut session = Session::on(recording.clone(), device.unwrap());
            session.bind_case().unwrap();
            session.run().unwrap();
            let outputs = session.outputs();
            session.close().unwrap();
            outputs
        };
        let bare = outputs(None);
        assert!(!bare.is_empty(), "{name}");
        for what in ["counts", "heat,lines", "all"] {
            let map = gpureplay_jobs::analysis::map_of(view);
            let collector = Collector::new(what.parse().unwrap(), map, |_| true);
            let probed = outputs(Some(Arc::new(collector)));
            let same = bare
                .iter()
                .zip(&probed)
                .all(|(a, b)| a.0 == b.0 && a.1.bytes() == b.1.bytes());
            assert!(same && bare.len() == probed.len(), "{name} with {what}");
        }
    }
}
