// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work limit of all chains.

use mali_facts::registers::JobStatus;
use mali_isa::Source;
use mali_model::{Options, UsedUp};

use crate::machine::{CODE, DATA, Format, JOBS, Machine};
use crate::shaders::code;

const SLOT: u32 = 1;

fn limited(limit: u64) -> Machine {
    let options = Options {
        work_limit: Some(limit),
        ..Options::default()
    };
    Machine::with("g52", Format::Lpae, options)
}

fn run(machine: &mut Machine) -> JobStatus {
    machine.clear_interrupts();
    machine.run(SLOT, JOBS)
}

fn endless(machine: &Machine, threads: u32) {
    machine.memory.compute_job(JOBS, threads, 0);
    machine.memory.write(CODE, &[0; 64]);
    machine.memory.write(CODE, &code("JUMP", &[Source::FauLow]));
    machine.memory.write64(JOBS + 0x180, CODE);
}

#[test]
fn a_shader_that_never_ends_is_terminated_and_named() {
    let limit = 100_000;
    let mut machine = limited(limit);
    for threads in [16, 64, 1024] {
        endless(&machine, threads);
        machine.gpu.renew_work();
        assert_eq!(run(&mut machine), JobStatus::TERMINATED);
        let used_up = machine.gpu.used_up();
        let expected = UsedUp {
            job: JOBS,
            slot: SLOT,
            limit,
        };
        assert_eq!(used_up, Some(expected), "{threads} threads");
    }
    // Nothing runs until the limit is renewed.
    machine.memory.compute_job(JOBS, 64, 0);
    assert_eq!(run(&mut machine), JobStatus::TERMINATED);
    machine.gpu.renew_work();
    assert_eq!(machine.gpu.used_up(), None);
    assert_eq!(run(&mut machine), JobStatus::DONE);
    assert_eq!(machine.gpu.used_up(), None);
}

#[test]
fn chains_share_the_limit() {
    // A circular chain ends: jobs cost something.
    let jobs = 10;
    let limit = jobs * mali_model::JOB_COST;
    let mut machine = limited(limit);
    machine.memory.write_value_job(JOBS, DATA, 1, 0);
    for _ in 0..jobs {
        assert_eq!(run(&mut machine), JobStatus::DONE);
    }
    assert_eq!(run(&mut machine), JobStatus::TERMINATED);
    assert!(machine.gpu.used_up().is_some());
    machine.gpu.renew_work();
    machine.memory.write_value_job(JOBS, DATA, 1, JOBS);
    assert_eq!(run(&mut machine), JobStatus::TERMINATED);
    assert_eq!(machine.gpu.used_up().map(|used_up| used_up.job), Some(JOBS));
}

#[test]
fn without_a_limit_only_chains_have_budgets() {
    let options = Options {
        clause_budget: 5000,
        ..Options::default()
    };
    let mut machine = Machine::with("g52", Format::Lpae, options);
    endless(&machine, 64);
    for _ in 0..3 {
        assert_eq!(run(&mut machine), JobStatus::TERMINATED);
        assert_eq!(machine.gpu.used_up(), None);
    }
    machine.memory.compute_job(JOBS, 64, 0);
    assert_eq!(run(&mut machine), JobStatus::DONE);
}
