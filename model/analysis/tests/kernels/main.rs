// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mesa's kernels on two GPUs, and Oclgrind, if installed.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "../../../../mali/model/tests/samples/bench.rs"]
mod bench;
mod cases;
mod counts;
#[path = "../../../../mali/model/tests/samples/dump.rs"]
mod dump;
#[path = "../../../../mali/model/tests/samples/machine.rs"]
mod machine;
mod oclgrind;
#[path = "../../../../mali/isa/tests/instructions/support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;

use bench::Bench;
use cases::{Arg, CASES, Case};
use dump::Dump;
use gpureplay_analysis::report::{Job, RaceKind};
use gpureplay_analysis::{Area, AreaKind, Collector, Map};
use machine::Machine;

fn analysed(samples: &Path, product: u16, case: &Case, threads: usize) -> Job {
    let trace = format!("{product:04x}/{}.trace.txt.xz", case.kernel);
    let dump = Dump::read(&samples.join(trace));
    let bare = Bench::on(Machine::new(product, &dump, 1), &dump, 1);
    let buffers = case
        .args
        .iter()
        .filter(|arg| matches!(arg, Arg::Buffer(_) | Arg::Same(_)));
    let areas = (0..buffers.count()).map(|index| Area {
        name: format!("argument {index}"),
        kind: AreaKind::Tensor,
        address: bare.argument(index),
        bytes: 0x1_0000,
    });
    let map = Map::new(Vec::new(), areas.collect(), Vec::new());
    let what = "counts,heat,lines,races".parse().unwrap();
    let collector = Arc::new(Collector::new(what, map, |_| true));
    let machine = Machine::watched(product, &dump, threads, Some(collector.clone()));
    let mut bench = Bench::on(machine, &dump, 1);
    let mut index = 0;
    for arg in case.args {
        match arg {
            Arg::Buffer(data) => bench.put(index, &data.words()),
            Arg::Same(other) => bench.alias(index, *other),
            _ => continue,
        }
        index += 1;
    }
    bench.run().unwrap();
    let mut jobs = collector.take();
    assert_eq!(jobs.len(), 1, "{}", case.kernel);
    jobs.remove(0)
}

fn is_racy(job: &Job) -> bool {
    job.races
        .iter()
        .any(|race| race.kind != RaceKind::SameValue)
}

fn name(case: &Case) -> String {
    format!("{} {:?}", case.kernel, case.args)
}

#[test]
fn racy_kernels_race_and_safe_ones_do_not_on_both_generations() {
    let Some(samples) = support::shared("reference/shader-samples") else {
        return;
    };
    assert!(CASES.iter().filter(|case| case.racy).count() >= 10);
    assert!(CASES.iter().filter(|case| !case.racy).count() >= 10);
    let mut wrong = Vec::new();
    for case in CASES {
        for product in [0x7212, 0x6000] {
            let job = analysed(&samples, product, case, 2);
            assert_eq!(job.incomplete, [""; 0], "{}", case.kernel);
            if is_racy(&job) != case.racy {
                wrong.push(format!("{} on {product:04x}: {:?}", name(case), job.races));
            }
            let again = analysed(&samples, product, case, 1);
            assert!(job == again, "{}: threads matter", name(case));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_reads_textures_is_not_complete() {
    let Some(samples) = support::shared("reference/shader-samples") else {
        return;
    };
    let case = Case {
        file: "img.cl",
        kernel: "img_lin",
        global: [16, 8, 1],
        local: [4, 2, 1],
        args: &[],
        racy: false,
        bytes: false,
    };
    let job = analysed(&samples, 0x7212, &case, 1);
    assert!(
        job.incomplete.iter().any(|why| why.contains("textures")),
        "{:?}",
        job.incomplete
    );
    assert!(job.races.is_empty());
}

#[test]
fn oclgrind_says_the_same() {
    let Some(samples) = support::shared("reference/shader-samples") else {
        return;
    };
    if !oclgrind::is_there() {
        println!("skipped: no oclgrind-kernel on this machine (Debian's package oclgrind)");
        return;
    }
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in CASES {
        let theirs = oclgrind::run(&samples.join("kernels"), case);
        if theirs.races != case.racy {
            wrong.push(format!(
                "{}: Oclgrind finds races: {}",
                name(case),
                theirs.races
            ));
        }
        for product in [0x7212, 0x6000] {
            let job = analysed(&samples, product, case, 2);
            let sum = |of: fn(&gpureplay_analysis::report::AreaHeat) -> u64| -> u64 {
                let areas = job.heat.iter();
                areas
                    .filter(|area| area.kind == AreaKind::Tensor)
                    .map(of)
                    .sum()
            };
            let ours = [sum(|area| area.read), sum(|area| area.written)];
            println!(
                "{product:04x} {}: {ours:?}, Oclgrind {:?}",
                name(case),
                theirs.bytes
            );
            if case.bytes && ours != theirs.bytes {
                wrong.push(format!(
                    "{} on {product:04x}: {ours:?}, Oclgrind {:?}",
                    name(case),
                    theirs.bytes
                ));
            }
            compared += usize::from(case.bytes);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 24, "{compared}");
}

/// Mesa divides integers with floats; a race decides a compare-and-swap loop.
const COUNTED_OTHERWISE: [&str; 2] = ["early", "atom_f"];

#[test]
fn oclgrind_counts_the_same() {
    let Some(samples) = support::shared("reference/shader-samples") else {
        return;
    };
    if !oclgrind::is_there() {
        println!("skipped: no oclgrind-kernel on this machine (Debian's package oclgrind)");
        return;
    }
    let (mut wrong, mut kernels) = (Vec::new(), Vec::new());
    // With one buffer twice it is another kernel to Oclgrind.
    let plain = CASES.iter().filter(|case| {
        let same = case.args.iter().any(|arg| matches!(arg, Arg::Same(_)));
        !same && !COUNTED_OTHERWISE.contains(&case.kernel)
    });
    for case in plain {
        let theirs = oclgrind::normalised(&oclgrind::text(&samples.join("kernels"), case));
        for product in [0x7212, 0x6000] {
            let trace = format!("{product:04x}/{}.trace.txt.xz", case.kernel);
            let dump = Dump::read(&samples.join(trace));
            let ours = counts::normalised(&analysed(&samples, product, case, 2), &dump);
            println!("{product:04x} {}: {ours:?}", case.kernel);
            if ours != theirs {
                wrong.push(format!(
                    "{} on {product:04x}: {ours:?}, Oclgrind {theirs:?}",
                    name(case)
                ));
            }
        }
        kernels.push(case.kernel);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    kernels.sort_unstable();
    kernels.dedup();
    assert!(kernels.len() >= 12, "{kernels:?}");
}
