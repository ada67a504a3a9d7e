// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's own memory, in a process of its own.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "driver/machine.rs"]
mod machine;

use std::sync::Arc;

use gpureplay_memory::{PAGE_SIZE, Ram};
use mali_facts::registers::JobStatus;
use mali_model::Options;

use machine::{CODE, Format, JOBS, Machine, Rights};

/// Pages of an array: 24 MiB.
const ARRAY: u64 = 6144;
const FIRST: u64 = 0x1_0000_0000;
/// More than the model remembers.
const SHADERS: u64 = 300;
const LIMIT: u64 = 64 << 20;

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse::<u64>().unwrap() << 10
}

#[test]
#[cfg(target_os = "linux")]
fn the_model_adds_little_to_the_memory_of_the_gpu() {
    let ram = Arc::new(Ram::new(1 << 16).unwrap());
    let options = Options {
        threads: 16,
        ..Options::default()
    };
    let mut machine = Machine::on(ram.clone(), ram.clone(), "g52", Format::Lpae, options);
    machine.memory.map(CODE, SHADERS, Rights::Execute);
    machine.memory.map(FIRST, 3 * ARRAY, Rights::ReadWrite);
    for page in 0..3 * ARRAY {
        machine.memory.write32(FIRST + page * PAGE_SIZE as u64, 1);
    }
    let bytes = ARRAY * PAGE_SIZE as u64;
    let mut run = |shader: u64, threads: u64| {
        machine.memory.compute_job(JOBS, 16, 0);
        machine.memory.write(shader, &machine::ADD);
        machine.memory.write64(JOBS + 0x100, shader);
        let invocation =
            mali_facts::Invocation::pack([16, 1, 1], [threads as u32 / 16, 1, 1]).unwrap();
        machine.memory.write_words(JOBS + 32, &invocation.words);
        for slot in 0..3 {
            machine
                .memory
                .write64(JOBS + 0x180 + 8 * slot, FIRST + slot * bytes);
        }
        let status = machine.run(1, JOBS);
        assert_eq!(status, JobStatus::DONE, "{shader:#x}: {status}");
    };
    run(CODE, bytes / 4);
    for shader in 0..SHADERS {
        run(CODE + shader * PAGE_SIZE as u64, 64);
    }
    let used = 3 * bytes + SHADERS * PAGE_SIZE as u64;
    let added = peak_bytes().saturating_sub(used);
    println!(
        "{} MiB of GPU memory, {:.1} MiB besides",
        used >> 20,
        added as f64 / (1 << 20) as f64
    );
    assert!(added < LIMIT, "{added} bytes besides the memory of the GPU");
    assert!(peak_bytes() > used, "the arrays were not touched");
}
