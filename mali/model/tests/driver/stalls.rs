// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses that wait for the driver.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mali_facts::registers::{
    AddressSpaceCommand, GpuCommand, GpuInterrupt, JobStatus, address_space, gpu, job, mmu,
};
use mali_model::{FaultPolicy, Finished, Options};

use crate::machine::{CONFIG, DATA, Format, JOBS, Machine, Rights};

const HOLE: u64 = 0x800_0000;

fn stalling() -> (Machine, mpsc::Receiver<()>) {
    let (sender, receiver) = mpsc::channel();
    let options = Options {
        faults: FaultPolicy::Stall,
        stalled: Some(Arc::new(move |begins| {
            if begins {
                sender.send(()).unwrap();
            }
        })),
        ..Options::default()
    };
    (Machine::with("g52", Format::Lpae, options), receiver)
}

fn expect_fault(machine: &mut Machine, stalled: &mpsc::Receiver<()>, address: u64) {
    stalled.recv_timeout(Duration::from_secs(20)).unwrap();
    machine.gpu.poll_faults();
    assert_eq!(machine.mmu_interrupts(), mmu::page_fault(0));
    assert_eq!(machine.job_interrupts(), 0, "the job waits");
    let (status, at) = machine.mmu_fault();
    assert!(
        (JobStatus::TRANSLATION_FAULT_0.0..=JobStatus::TRANSLATION_FAULT_3.0)
            .contains(&status.code().0)
    );
    assert_eq!(at, address);
}

fn started(machine: &mut Machine) -> JoinHandle<Finished> {
    machine.submit(1, JOBS, CONFIG);
    let work = machine.gpu.take_work().unwrap();
    thread::spawn(move || work.execute())
}

#[test]
fn memory_can_be_mapped_while_an_access_waits() {
    let (mut machine, stalled) = stalling();
    machine.memory.compute_job(JOBS, 64, JOBS + 0x400);
    machine
        .memory
        .write_value_job(JOBS + 0x400, HOLE + 0x1000, 7, 0);
    machine.memory.write64(JOBS + 0x190, HOLE);
    let runner = started(&mut machine);
    for page in [HOLE, HOLE + 0x1000] {
        expect_fault(&mut machine, &stalled, page);
        machine.gpu.write32(mmu::MMU_INT_CLEAR, mmu::page_fault(0));
        machine.memory.map(page, 1, Rights::ReadWrite);
        machine.space_command(AddressSpaceCommand::FlushPageTables);
    }
    machine.gpu.finish(runner.join().unwrap());
    assert_eq!(machine.status(1), JobStatus::DONE);
    assert_eq!(
        (machine.job_interrupts(), machine.mmu_interrupts()),
        (job::done(1), 0)
    );
    assert_eq!(f32::from_bits(machine.memory.read32(HOLE + 63 * 4)), 94.5);
    assert_eq!(machine.memory.read64(HOLE + 0x1000), 7);
}

#[test]
fn a_command_without_repair_faults_again() {
    let (mut machine, stalled) = stalling();
    machine.memory.write_value_job(JOBS, HOLE, 7, 0);
    let runner = started(&mut machine);
    for _ in 0..3 {
        expect_fault(&mut machine, &stalled, HOLE);
        machine.gpu.write32(mmu::MMU_INT_CLEAR, mmu::page_fault(0));
        machine.space_command(AddressSpaceCommand::Unlock);
    }
    expect_fault(&mut machine, &stalled, HOLE);
    machine
        .gpu
        .write32(address_space::offset(0, address_space::TRANSTAB_LO), 0);
    machine.space_command(AddressSpaceCommand::Update);
    machine.gpu.finish(runner.join().unwrap());
    assert_eq!(machine.status(1), JobStatus::TRANSLATION_FAULT_2);
    assert_eq!(machine.job_interrupts(), job::failed(1));
}

#[test]
fn a_reset_ends_the_wait() {
    let (mut machine, stalled) = stalling();
    machine.memory.write_value_job(JOBS, HOLE, 7, 0);
    let runner = started(&mut machine);
    expect_fault(&mut machine, &stalled, HOLE);
    machine.command(GpuCommand::HardReset);
    machine.gpu.finish(runner.join().unwrap());
    assert_eq!(
        machine.gpu.read32(gpu::GPU_INT_RAWSTAT),
        GpuInterrupt::RESET_COMPLETED.bits()
    );
    machine.memory.write_value_job(JOBS, DATA, 9, 0);
    machine.power_on();
    machine.activate();
    machine.run(1, JOBS);
    assert_eq!(machine.memory.read64(DATA), 9);
}
