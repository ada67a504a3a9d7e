// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops before and during chains.

use std::thread;
use std::time::Duration;

use mali_facts::registers::{GpuCommand, GpuInterrupt, JobCommand, JobStatus, gpu, job, job_slot};

use crate::machine::{CONFIG, DATA, JOBS, Machine};

const FLAG: u32 = 1 << 11;

#[test]
fn stop_commands_before_the_chain_runs() {
    use JobCommand::{HardStop, HardStop0, HardStop1, Nop, SoftStop, SoftStop0, SoftStop1};
    for (command, flag, expected) in [
        (SoftStop, 0, Some(JobStatus::STOPPED)),
        (HardStop, 0, Some(JobStatus::TERMINATED)),
        (SoftStop0, 0, Some(JobStatus::STOPPED)),
        (SoftStop0, FLAG, None),
        (SoftStop1, 0, None),
        (SoftStop1, FLAG, Some(JobStatus::STOPPED)),
        (HardStop0, 0, Some(JobStatus::TERMINATED)),
        (HardStop0, FLAG, None),
        (HardStop1, 0, None),
        (HardStop1, FLAG, Some(JobStatus::TERMINATED)),
        (Nop, 0, None),
    ] {
        let mut machine = Machine::new();
        machine.memory.write_value_job(JOBS, DATA, 1, 0);
        machine.submit(1, JOBS, CONFIG | flag);
        machine.set_slot(1, job_slot::COMMAND, command as u32);
        let status = machine.status(1);
        assert_eq!(
            machine.gpu.has_work(),
            expected.is_none(),
            "{command:?} {flag}"
        );
        match expected {
            Some(expected) => {
                assert_eq!(
                    (status, machine.job_interrupts()),
                    (expected, job::failed(1))
                );
                assert_eq!(machine.tail(1), JOBS, "where to resume");
            }
            None => assert_eq!((status, machine.job_interrupts()), (JobStatus::ACTIVE, 0)),
        }
    }
}

fn endless() -> Machine {
    let machine = Machine::new();
    machine.memory.write_value_job(JOBS, DATA, 1, JOBS);
    machine
}

#[test]
fn stop_commands_while_the_chain_runs() {
    for (command, expected) in [
        (JobCommand::SoftStop, JobStatus::STOPPED),
        (JobCommand::HardStop, JobStatus::TERMINATED),
    ] {
        let mut machine = endless();
        machine.submit(1, JOBS, CONFIG);
        let work = machine.gpu.take_work().unwrap();
        assert!(machine.gpu.is_busy());
        let runner = thread::spawn(move || work.execute());
        thread::sleep(Duration::from_millis(5));
        machine.set_slot(1, job_slot::COMMAND, command as u32);
        machine.gpu.finish(runner.join().unwrap());
        assert_eq!(machine.status(1), expected);
        assert_eq!(machine.job_interrupts(), job::failed(1));
        assert_eq!(machine.tail(1), JOBS);
    }
}

#[test]
fn a_stopped_chain_resumes_at_its_tail() {
    let mut machine = Machine::new();
    machine.memory.write_value_job(JOBS, DATA, 1, JOBS + 0x40);
    machine.memory.write_value_job(JOBS + 0x40, DATA + 8, 2, 0);
    machine.submit(1, JOBS, CONFIG);
    let work = machine.gpu.take_work().unwrap();
    machine.set_slot(1, job_slot::COMMAND, JobCommand::SoftStop as u32);
    machine.gpu.finish(work.execute());
    assert_eq!(machine.status(1), JobStatus::STOPPED);
    machine.clear_interrupts();
    let tail = machine.tail(1);
    assert_eq!(machine.run(1, tail), JobStatus::DONE);
    assert_eq!(
        (machine.memory.read64(DATA), machine.memory.read64(DATA + 8)),
        (1, 2)
    );
}

#[test]
fn reset_during_a_job_waits_for_it_and_forgets_it() {
    let mut machine = endless();
    machine.submit(1, JOBS, CONFIG);
    let work = machine.gpu.take_work().unwrap();
    let runner = thread::spawn(move || work.execute());
    thread::sleep(Duration::from_millis(5));
    machine.command(GpuCommand::SoftReset);
    assert_eq!(
        machine.gpu.read32(gpu::GPU_INT_RAWSTAT),
        0,
        "the job may still write to memory"
    );
    machine.gpu.finish(runner.join().unwrap());
    assert_eq!(
        machine.gpu.read32(gpu::GPU_INT_RAWSTAT),
        GpuInterrupt::RESET_COMPLETED.bits()
    );
    assert_eq!(
        (machine.job_interrupts(), machine.slot(1, job_slot::STATUS)),
        (0, 0)
    );

    machine.memory.write_value_job(JOBS, DATA + 8, 7, 0);
    machine.power_on();
    machine.activate();
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    assert_eq!(machine.memory.read64(DATA + 8), 7, "the next job is right");
}

#[test]
fn an_endless_chain_ends() {
    let mut machine = endless();
    assert_eq!(machine.run(1, JOBS), JobStatus::TERMINATED);
}
