// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job slots.

use mali_facts::JobType;
use mali_facts::registers::{JobCommand, JobStatus, job, job_slot};
use mali_model::{Options, PROFILES};

use crate::machine::{CONFIG, DATA, Format, JOBS, Machine, NOWHERE};

const A: u64 = JOBS;
const B: u64 = JOBS + 0x1000;

fn two_jobs() -> Machine {
    let machine = Machine::new();
    machine.memory.write_value_job(A, DATA, 1, 0);
    machine.memory.write_value_job(B, DATA + 8, 2, 0);
    machine
}

fn state(machine: &mut Machine) -> u32 {
    machine.gpu.read32(job::JOB_INT_JS_STATE)
}

#[test]
fn a_chain_runs_and_reports() {
    for format in [Format::Lpae, Format::AArch64] {
        for profile in PROFILES {
            let mut machine = Machine::with(profile.name, format, Options::default());
            machine.memory.write_value_job(A, DATA + 0x3000, 7, B);
            machine.memory.job(B, JobType::Null, B + 0x400);
            machine.memory.compute_job(B + 0x400, 64, 0);
            machine.submit(1, A, CONFIG);
            assert_eq!(machine.slot(1, job_slot::COMMAND_NEXT), 0, "taken at once");
            assert_eq!(machine.status(1), JobStatus::ACTIVE);
            assert_eq!(machine.slot(1, job_slot::HEAD_LO), A as u32);
            assert_eq!(machine.slot(1, job_slot::CONFIG), CONFIG);
            assert!(machine.gpu.has_work());
            assert_eq!(machine.gpu.run(), 1);
            assert_eq!(
                machine.slot(1, job_slot::STATUS),
                JobStatus::DONE.0,
                "{}",
                profile.name
            );
            assert_eq!(machine.job_interrupts(), job::done(1));
            assert_eq!(machine.tail(1), B + 0x400);
            assert_eq!(machine.memory.read64(DATA + 0x3000), 7);
            for address in [A, B, B + 0x400] {
                assert_eq!(
                    machine.memory.read32(address),
                    JobStatus::DONE.0,
                    "{address:#x}"
                );
            }
            machine.memory.expect_sums(64);
            assert!(!machine.gpu.has_work());
        }
    }
}

/// What is left, over seeds, where both jobs write.
fn left_by_seeds(link: impl Fn(&mut Machine)) -> std::collections::BTreeSet<u64> {
    let left = |seed| {
        let options = Options {
            seed,
            ..Options::default()
        };
        let mut machine = Machine::with("g52", Format::Lpae, options);
        machine.memory.write_value_job(A, DATA, 1, B);
        machine.memory.write_value_job(B, DATA, 2, 0);
        link(&mut machine);
        machine.submit(1, A, CONFIG);
        machine.gpu.run();
        assert_eq!(machine.job_interrupts(), job::done(1));
        assert_eq!(machine.tail(1), B, "the last of the list");
        for address in [A, B] {
            assert_eq!(machine.memory.read32(address), JobStatus::DONE.0);
        }
        machine.memory.read64(DATA)
    };
    (0..8).map(left).collect()
}

#[test]
fn jobs_wait_for_what_their_headers_say_and_for_nothing_else() {
    let second = |machine: &mut Machine, flags: u32, dependency: u32| {
        let memory = &machine.memory;
        let word = memory.read32(B + 16) & 0xffff | flags | 2 << 16;
        memory.write32(B + 16, word);
        memory.write32(B + 20, dependency);
        let first = memory.read32(A + 16) & 0xffff | 1 << 16;
        memory.write32(A + 16, first);
    };
    assert_eq!(
        left_by_seeds(|machine| second(machine, 0, 0)),
        [1, 2].into()
    );
    let barrier = 1 << 8;
    assert_eq!(
        left_by_seeds(|machine| second(machine, barrier, 0)),
        [2].into()
    );
    assert_eq!(left_by_seeds(|machine| second(machine, 0, 1)), [2].into());
    assert_eq!(
        left_by_seeds(|machine| second(machine, 0, 1 << 16)),
        [2].into()
    );
    // Suppress prefetch: the first job may change the headers after it.
    let suppress = |machine: &mut Machine| {
        second(machine, 0, 0);
        let word = machine.memory.read32(A + 16) | 1 << 11;
        machine.memory.write32(A + 16, word);
    };
    assert_eq!(left_by_seeds(suppress), [2].into());
}

#[test]
fn the_next_chain_follows_the_first() {
    let mut machine = two_jobs();
    machine.submit(1, A, CONFIG);
    assert_eq!(state(&mut machine), job::active(1));
    machine.submit(1, B, CONFIG | 1 << 11);
    assert_eq!(state(&mut machine), job::active(1) | job::next_pending(1));
    assert_eq!(
        machine.slot(1, job_slot::COMMAND_NEXT),
        JobCommand::Start as u32
    );
    assert_eq!(machine.slot(1, job_slot::HEAD_LO), A as u32);

    let first = machine.gpu.take_work().unwrap().execute();
    machine.gpu.finish(first);
    assert_eq!(machine.slot(1, job_slot::HEAD_LO), B as u32, "promoted");
    assert_eq!(machine.slot(1, job_slot::COMMAND_NEXT), 0);
    assert_eq!(machine.job_interrupts(), job::done(1));
    let frozen = job::active(1) | job::next_pending(1);
    assert_eq!(
        state(&mut machine),
        frozen,
        "stands still until the interrupt is cleared"
    );
    machine.clear_interrupts();
    assert_eq!(state(&mut machine), job::active(1));

    machine.gpu.run();
    machine.clear_interrupts();
    assert_eq!(state(&mut machine), 0);
    assert_eq!(
        (machine.memory.read64(DATA), machine.memory.read64(DATA + 8)),
        (1, 2)
    );
}

#[test]
fn two_completions_can_share_an_interrupt() {
    let mut machine = two_jobs();
    machine.submit(1, A, CONFIG);
    machine.submit(1, B, CONFIG);
    assert_eq!(machine.gpu.run(), 2);
    assert_eq!(machine.job_interrupts(), job::done(1));
    machine.clear_interrupts();
    assert_eq!(
        state(&mut machine),
        0,
        "which tells the driver that both are done"
    );
}

#[test]
fn a_failure_holds_the_next_chain_back() {
    let mut machine = two_jobs();
    machine.submit(1, NOWHERE, CONFIG);
    machine.submit(1, B, CONFIG);
    assert_eq!(machine.gpu.run(), 1);
    assert_eq!(machine.job_interrupts(), job::failed(1));
    assert_eq!(
        machine.slot(1, job_slot::COMMAND_NEXT),
        JobCommand::Start as u32
    );
    assert!(!machine.gpu.has_work());

    // The driver takes the job back and starts it unchanged.
    machine.set_slot(1, job_slot::COMMAND_NEXT, JobCommand::Nop as u32);
    machine.clear_interrupts();
    assert_eq!(state(&mut machine), 0);
    assert_eq!(
        machine.slot(1, job_slot::STATUS),
        JobStatus::JOB_READ_FAULT.0,
        "kept until the next start"
    );
    assert_eq!(machine.memory.read64(DATA + 8), 0);
    machine.set_slot(1, job_slot::COMMAND_NEXT, JobCommand::Start as u32);
    machine.gpu.run();
    assert_eq!(machine.status(1), JobStatus::DONE);
    assert_eq!(machine.memory.read64(DATA + 8), 2);
}

#[test]
fn clearing_a_failure_starts_the_next_chain() {
    let mut machine = two_jobs();
    machine.submit(1, NOWHERE, CONFIG);
    machine.submit(1, B, CONFIG);
    machine.gpu.run();
    machine.gpu.write32(job::JOB_INT_CLEAR, job::failed(1));
    assert_eq!(state(&mut machine), job::active(1));
    assert_eq!(machine.gpu.run(), 1);
    assert_eq!(machine.memory.read64(DATA + 8), 2);
}

#[test]
fn slots_are_independent() {
    let mut machine = two_jobs();
    machine.submit(0, A, CONFIG);
    machine.submit(2, B, CONFIG);
    assert_eq!(state(&mut machine), job::active(0) | job::active(2));
    assert_eq!(machine.gpu.run(), 2);
    assert_eq!(machine.job_interrupts(), job::done(0) | job::done(2));
    machine.gpu.write32(job::JOB_INT_CLEAR, job::done(0));
    assert_eq!(
        state(&mut machine),
        job::active(2),
        "slot 2 was not cleared"
    );
}

#[test]
fn slots_that_do_not_exist_do_nothing() {
    let mut machine = two_jobs();
    machine.submit(3, A, CONFIG);
    assert!(!machine.gpu.has_work());
    assert_eq!(
        (machine.slot(3, job_slot::HEAD_NEXT_LO), state(&mut machine)),
        (0, 0)
    );
}

#[test]
fn status_is_not_written_back_when_told_so() {
    let mut machine = two_jobs();
    machine.submit(1, A, CONFIG | 1 << 15);
    machine.gpu.run();
    assert_eq!(
        (machine.memory.read32(A), machine.memory.read64(DATA)),
        (0, 1)
    );
}

#[test]
fn values_have_widths() {
    for (kind, expected) in [
        (3, 0),
        (4, 0xffff_ffff_ffff_ff88),
        (5, 0xffff_ffff_ffff_7788),
        (6, 0xffff_ffff_5566_7788),
        (7, 0x1122_3344_5566_7788),
    ] {
        let mut machine = Machine::new();
        machine
            .memory
            .write_value_job(A, DATA + 8, 0x1122_3344_5566_7788, 0);
        machine.memory.write32(A + 40, kind);
        machine.memory.write64(DATA + 8, u64::MAX);
        machine.submit(1, A, CONFIG);
        machine.gpu.run();
        assert_eq!(machine.memory.read64(DATA + 8), expected, "{kind}");
    }
}
