// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports survive JSON and agree with other commands.

use std::sync::Arc;

use gpureplay_jobs::measure::{Watch, measure};
use gpureplay_jobs::{Jobs, Report};
use gpureplay_library::device::Choice;
use gpureplay_library::{Device, ModelOptions, Recording, Session};

fn report(name: &str, threads: usize) -> Report {
    let folder = format!("{}/../../recordings/{name}", env!("CARGO_MANIFEST_DIR"));
    let recording = Recording::open(&folder).unwrap().apart().unwrap();
    let jobs = Jobs::of(&recording).unwrap();
    let watch = Arc::new(Watch::default());
    let options = ModelOptions {
        threads: Some(threads),
        ..ModelOptions::default()
    };
    let device = Device::open_observed(
        &Choice::Model(None),
        jobs.gpu.0,
        options,
        Some(watch.clone()),
    );
    let mut session = Session::on(recording.clone(), device.unwrap());
    for (name, file) in &recording.files().case().unwrap().inputs {
        let file = recording.files().directory.join(file);
        session.bind_file(name, file).unwrap();
    }
    let measured = measure(&mut session, &jobs, Some(&watch), 1, 3).unwrap();
    let all: Vec<usize> = (0..jobs.jobs.len()).collect();
    Report::new(&recording, &jobs, &all, None, Some(&measured))
}

#[test]
fn a_report_comes_back_from_json() {
    for name in ["saxpy-g52", "digits-g52", "lenet-g52"] {
        let report = report(name, 2);
        let text = serde_json::to_string(&report).unwrap();
        let back: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(back, report);
    }
}

#[test]
fn the_numbers_of_saxpy_are_those_of_its_formula() {
    let report = report("saxpy-g52", 1);
    let [job] = &report.jobs[..] else {
        panic!("one job")
    };
    assert_eq!(job.global, Some([1000, 1, 1]));
    let work = job.work.as_ref().unwrap();
    assert_eq!(work.threads, 1000);
    // x, y and result: 1000 numbers of 4 bytes each.
    assert_eq!((work.bytes_read, work.bytes_written), (8000, 4000));
    assert_eq!(
        (work.messages["load"], work.messages["store"]),
        (2000, 1000)
    );
    assert_eq!(report.kernels[0].work.as_ref(), Some(work));
    let spread = report.chains[0].seconds.unwrap();
    assert!(spread.min > 0.0 && spread.min <= spread.median && spread.median <= spread.max);
}

#[test]
fn work_does_not_depend_on_host_threads() {
    let work = |threads| -> Vec<_> {
        let jobs = report("lenet-g52", threads).jobs;
        jobs.into_iter().map(|job| (job.index, job.work)).collect()
    };
    let one = work(1);
    assert_eq!(one.len(), 20);
    assert!(one.iter().all(|(_, work)| work.is_some()));
    assert_eq!(one, work(4));
}

#[test]
fn the_gpus_own_counters_are_read_only_if_they_are_asked_for() {
    let folder = format!("{}/../../recordings/digits-g52", env!("CARGO_MANIFEST_DIR"));
    let recording = Recording::open(&folder).unwrap().apart().unwrap();
    let jobs = Jobs::of(&recording).unwrap();
    let all: Vec<usize> = (0..jobs.jobs.len()).collect();
    let mut registers = Vec::new();
    for wanted in [false, true] {
        let device = Device::open(&Choice::Model(None), jobs.gpu.0, ModelOptions::default());
        let mut session = Session::on(recording.clone(), device.unwrap());
        session.count_gpu(wanted);
        for (name, file) in &recording.files().case().unwrap().inputs {
            let file = recording.files().directory.join(file);
            session.bind_file(name, file).unwrap();
        }
        let measured = measure(&mut session, &jobs, None, 0, 3).unwrap();
        registers.push(session.timing().registers);
        let report = Report::new(&recording, &jobs, &all, None, Some(&measured));
        assert_eq!(report.chains.len(), 20);
        for chain in &report.chains {
            assert_eq!(
                (chain.gpu_cycles.is_some(), chain.gpu_ticks.is_some()),
                (wanted, wanted)
            );
            // Counters follow the host's clock.
            let cycles = chain.gpu_cycles.map_or(1.0, |it| it.min);
            assert!(cycles > 0.0 && chain.seconds.is_some(), "{chain:?}");
        }
    }
    assert_eq!(registers[0], registers[1]);
}
