// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults by kind, level and access, and the next job.

use std::fmt;
use std::sync::{Arc, Mutex};

use mali_facts::JobType;
use mali_facts::registers::{
    AddressSpaceCommand, FaultAccess, FaultStatus, JobStatus, address_space, gpu, job, job_slot,
    mmu,
};
use mali_model::{Level, Log, Options};

use crate::machine::{BIFROST, CODE, CONFIG, DATA, Format, JOBS, Machine, NOWHERE, Rights};

type Prepare = fn(&mut Machine);

/// JS_STATUS, the header's fault pointer, the MMU's status.
struct Case {
    name: &'static str,
    prepare: Prepare,
    status: JobStatus,
    pointer: u64,
    mmu: Option<(JobStatus, FaultAccess)>,
}

const fn case(
    name: &'static str,
    prepare: Prepare,
    status: JobStatus,
    pointer: u64,
    mmu: Option<(JobStatus, FaultAccess)>,
) -> Case {
    Case {
        name,
        prepare,
        status,
        pointer,
        mmu,
    }
}

const READ: FaultAccess = FaultAccess::Read;
const WRITE: FaultAccess = FaultAccess::Write;

/// `prepare` may change the compute job at JOBS.
const CASES: &[Case] = &[
    case(
        "type 0",
        |m| m.memory.job(JOBS, JobType::NotStarted, 0),
        JobStatus::JOB_CONFIG_FAULT,
        JOBS,
        None,
    ),
    case(
        "type 99",
        |m| m.memory.write32(JOBS + 16, 1 | 99 << 1),
        JobStatus::JOB_CONFIG_FAULT,
        JOBS,
        None,
    ),
    case(
        "tiler job",
        |m| m.memory.job(JOBS, JobType::Tiler, 0),
        JobStatus::JOB_CONFIG_FAULT,
        JOBS,
        None,
    ),
    case(
        "32-bit descriptor",
        |m| m.memory.write32(JOBS + 16, 4 << 1),
        JobStatus::JOB_CONFIG_FAULT,
        JOBS,
        None,
    ),
    case(
        "value of no type",
        |m| {
            m.memory.write_value_job(JOBS, DATA, 1, 0);
            m.memory.write32(JOBS + 40, 9);
        },
        JobStatus::JOB_CONFIG_FAULT,
        JOBS,
        None,
    ),
    case(
        "value to nowhere",
        |m| m.memory.write_value_job(JOBS, NOWHERE, 1, 0),
        JobStatus::TRANSLATION_FAULT_1,
        NOWHERE,
        Some((JobStatus::TRANSLATION_FAULT_1, WRITE)),
    ),
    case(
        "value to a read-only page",
        |m| {
            m.memory.map(DATA, 1, Rights::ReadOnly);
            m.memory.write_value_job(JOBS, DATA + 16, 1, 0);
        },
        JobStatus::PERMISSION_FAULT_3,
        DATA + 16,
        Some((JobStatus::PERMISSION_FAULT_3, WRITE)),
    ),
    case(
        "state that is not mapped",
        |m| m.memory.write64(JOBS + 64 + 14 * 4, DATA + 0x10_0000),
        JobStatus::TRANSLATION_FAULT_3,
        DATA + 0x10_0000,
        Some((JobStatus::TRANSLATION_FAULT_3, READ)),
    ),
    case(
        "shader that is not mapped",
        |m| m.memory.write64(JOBS + 0x100, CODE + 0x1000),
        JobStatus::TRANSLATION_FAULT_3,
        CODE + 0x1000,
        Some((JobStatus::TRANSLATION_FAULT_3, FaultAccess::Execute)),
    ),
    case(
        "shader in data",
        |m| m.memory.write64(JOBS + 0x100, DATA),
        JobStatus::PERMISSION_FAULT_3,
        DATA,
        Some((JobStatus::PERMISSION_FAULT_3, FaultAccess::Execute)),
    ),
    case(
        "load from nowhere",
        |m| m.memory.write64(JOBS + 0x180, NOWHERE),
        JobStatus::TRANSLATION_FAULT_1,
        NOWHERE,
        Some((JobStatus::TRANSLATION_FAULT_1, READ)),
    ),
    case(
        "load past the last page",
        |m| m.memory.write64(JOBS + 0x188, DATA + 0x1_0000 - 8),
        JobStatus::TRANSLATION_FAULT_3,
        DATA + 0x1_0000,
        Some((JobStatus::TRANSLATION_FAULT_3, READ)),
    ),
    case(
        "store to a read-only page",
        |m| m.memory.map(DATA + 0x2000, 1, Rights::ReadOnly),
        JobStatus::PERMISSION_FAULT_3,
        DATA + 0x2000,
        Some((JobStatus::PERMISSION_FAULT_3, WRITE)),
    ),
    case(
        "work group too large",
        |m| {
            m.memory.write32(JOBS + 32, 1023);
            m.memory
                .write32(JOBS + 36, 10 | 10 << 5 | 10 << 10 | 10 << 16 | 10 << 22);
        },
        JobStatus::DATA_INVALID_FAULT,
        JOBS,
        None,
    ),
    case(
        "shifts out of order",
        |m| m.memory.write32(JOBS + 36, 5),
        JobStatus::DATA_INVALID_FAULT,
        JOBS,
        None,
    ),
    case(
        "cores off",
        |m| {
            let cores = m.gpu.read32(gpu::SHADER_PRESENT_LO);
            m.gpu.write32(gpu::SHADER_PWROFF_LO, cores);
        },
        JobStatus::JOB_POWER_FAULT,
        JOBS,
        None,
    ),
    case(
        "cache off",
        |m| m.gpu.write32(gpu::L2_PWROFF_LO, 1),
        JobStatus::JOB_POWER_FAULT,
        JOBS,
        None,
    ),
];

fn mmu_status(machine: &mut Machine) -> (FaultStatus, u64) {
    let status = machine
        .gpu
        .read32(address_space::offset(0, address_space::FAULTSTATUS));
    (
        FaultStatus(status),
        machine.read64(address_space::offset(0, address_space::FAULTADDRESS_LO)),
    )
}

#[test]
fn faults_are_reported_as_hardware_does() {
    for gpu in BIFROST {
        for format in [Format::Lpae, Format::AArch64] {
            for case in CASES {
                check(gpu, format, case);
            }
        }
    }
}

fn check(gpu: &str, format: Format, case: &Case) {
    let name = format!("{gpu}, {format:?}: {}", case.name);
    let mut machine = Machine::with(gpu, format, Options::default());
    machine.memory.compute_job(JOBS, 64, 0);
    (case.prepare)(&mut machine);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    let status = JobStatus(machine.slot(1, job_slot::STATUS));
    assert_eq!(status, case.status, "{name}: got {status}");
    assert_eq!(machine.job_interrupts(), job::failed(1), "{name}");
    assert_eq!(machine.tail(1), JOBS, "{name}");
    assert_eq!(
        machine.memory.read32(JOBS) & 0xff,
        case.status.0,
        "{name}: header"
    );
    assert_eq!(
        machine.memory.read64(JOBS + 8),
        case.pointer,
        "{name}: fault pointer"
    );
    match case.mmu {
        Some((code, access)) => {
            assert_eq!(machine.mmu_interrupts(), mmu::page_fault(0), "{name}");
            let (status, address) = mmu_status(&mut machine);
            assert_eq!(
                (status.code(), status.access()),
                (code, access),
                "{name}: {status}"
            );
            assert_eq!(address, case.pointer, "{name}");
        }
        None => assert_eq!(machine.mmu_interrupts(), 0, "{name}"),
    }
    next_job_is_right(&mut machine, &name);
}

/// Without a reset.
fn next_job_is_right(machine: &mut Machine, name: &str) {
    machine.clear_interrupts();
    machine.power_on();
    machine.memory.map(DATA, 16, Rights::ReadWrite);
    machine.memory.compute_job(JOBS, 64, 0);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    assert_eq!(
        JobStatus(machine.slot(1, job_slot::STATUS)),
        JobStatus::DONE,
        "{name}"
    );
    machine.memory.expect_sums(64);
    assert_eq!(
        (machine.job_interrupts(), machine.mmu_interrupts()),
        (job::done(1), 0),
        "{name}"
    );
}

#[test]
fn chains_that_cannot_be_read() {
    for (head, config, status, mmu) in [
        (
            NOWHERE,
            CONFIG,
            JobStatus::JOB_READ_FAULT,
            mmu::page_fault(0),
        ),
        (0, CONFIG, JobStatus::JOB_READ_FAULT, mmu::page_fault(0)),
        (JOBS + 32, CONFIG, JobStatus::JOB_CONFIG_FAULT, 0),
        // Not set up, and missing.
        (
            JOBS,
            CONFIG | 5,
            JobStatus::JOB_READ_FAULT,
            mmu::page_fault(5),
        ),
        (
            JOBS,
            CONFIG | 15,
            JobStatus::JOB_READ_FAULT,
            mmu::page_fault(15),
        ),
    ] {
        let mut machine = Machine::new();
        machine.memory.write_value_job(JOBS, DATA, 1, 0);
        machine.submit(1, head, config);
        machine.gpu.run();
        let name = format!("{head:#x} {config:#x}");
        assert_eq!(
            JobStatus(machine.slot(1, job_slot::STATUS)),
            status,
            "{name}"
        );
        assert_eq!(
            (machine.job_interrupts(), machine.mmu_interrupts()),
            (job::failed(1), mmu),
            "{name}"
        );
    }
}

#[test]
fn headers_that_cannot_be_written() {
    let mut machine = Machine::new();
    machine.memory.write_value_job(JOBS, DATA, 1, 0);
    machine.memory.map(JOBS, 1, Rights::ReadOnly);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    assert_eq!(
        JobStatus(machine.slot(1, job_slot::STATUS)),
        JobStatus::JOB_WRITE_FAULT
    );
    assert_eq!(
        mmu_status(&mut machine).0.code(),
        JobStatus::PERMISSION_FAULT_3
    );
}

#[test]
fn slots_and_cores_that_cannot_run_the_job() {
    for (slot, cores, status) in [
        (0, 3, JobStatus::JOB_CONFIG_FAULT),
        (1, 0, JobStatus::JOB_AFFINITY_FAULT),
        (1, 4, JobStatus::JOB_AFFINITY_FAULT),
        (1, 2, JobStatus::DONE),
        (2, 1, JobStatus::DONE),
    ] {
        let mut machine = Machine::new();
        machine.memory.compute_job(JOBS, 16, 0);
        machine.submit_on(slot, JOBS, CONFIG, cores);
        machine.gpu.run();
        assert_eq!(
            JobStatus(machine.slot(slot, job_slot::STATUS)),
            status,
            "{slot} {cores}"
        );
    }
}

#[test]
fn every_type_that_is_replayed_runs() {
    for job_type in JobType::ALL {
        let mut machine = Machine::new();
        machine.memory.job(JOBS, job_type, 0);
        match job_type {
            JobType::WriteValue => machine.memory.write_value_job(JOBS, DATA, 1, 0),
            JobType::Compute => machine.memory.compute_job(JOBS, 64, 0),
            _ => {}
        }
        machine.submit(1, JOBS, CONFIG);
        machine.gpu.run();
        let status = JobStatus(machine.slot(1, job_slot::STATUS));
        let expected = match job_type.is_replayed() {
            true => JobStatus::DONE,
            // Draws need more than a header; others are not modelled.
            false => JobStatus::JOB_CONFIG_FAULT,
        };
        assert_eq!(status, expected, "{job_type:?}");
    }
}

#[test]
fn jobs_that_draw_without_descriptors_fault() {
    for (slot, job_type) in [
        (0, JobType::Fragment),
        (1, JobType::Vertex),
        (1, JobType::Tiler),
        (1, JobType::IndexedVertex),
    ] {
        let mut machine = Machine::new();
        machine.memory.job(JOBS, job_type, 0);
        machine.submit(slot, JOBS, CONFIG);
        machine.gpu.run();
        assert_eq!(
            JobStatus(machine.slot(slot, job_slot::STATUS)),
            JobStatus::JOB_CONFIG_FAULT,
            "{job_type:?}"
        );
    }
}

#[test]
fn a_fault_ends_the_chain_at_its_job() {
    let mut machine = Machine::new();
    machine.memory.write_value_job(JOBS, DATA, 1, JOBS + 0x40);
    machine
        .memory
        .write_value_job(JOBS + 0x40, NOWHERE, 2, JOBS + 0x80);
    machine.memory.write_value_job(JOBS + 0x80, DATA + 8, 3, 0);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    assert_eq!(machine.tail(1), JOBS + 0x40);
    assert_eq!(
        (machine.memory.read64(DATA), machine.memory.read64(DATA + 8)),
        (1, 0)
    );
    assert_eq!(machine.memory.read32(JOBS), JobStatus::DONE.0);
    assert_eq!(machine.memory.read32(JOBS + 0x80), 0, "never started");
}

#[test]
fn a_disabled_address_space_faults() {
    let mut machine = Machine::new();
    machine.memory.write_value_job(JOBS, DATA, 1, 0);
    machine
        .gpu
        .write32(address_space::offset(0, address_space::TRANSTAB_LO), 0);
    machine
        .gpu
        .write32(address_space::offset(0, address_space::TRANSTAB_HI), 0);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    assert_eq!(
        machine.slot(1, job_slot::STATUS),
        JobStatus::DONE.0,
        "not before UPDATE"
    );
    machine.space_command(AddressSpaceCommand::Update);
    machine.clear_interrupts();
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    assert_eq!(
        mmu_status(&mut machine).0.code(),
        JobStatus::TRANSLATION_FAULT_0
    );
}

#[derive(Default)]
struct Last(Mutex<String>);

impl Log for Last {
    fn level(&self) -> Level {
        Level::Error
    }

    fn write(&self, _: Level, message: fmt::Arguments<'_>) {
        self.0.lock().unwrap().push_str(&message.to_string());
    }
}

#[test]
fn instructions_that_mean_nothing_are_named() {
    let log = Arc::new(Last::default());
    let options = Options {
        log: log.clone(),
        ..Options::default()
    };
    let mut machine = Machine::with("g52", Format::Lpae, options);
    machine.memory.compute_job(JOBS, 16, 0);
    machine.memory.write(CODE, &[0xff; 256]);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    assert_eq!(
        JobStatus(machine.slot(1, job_slot::STATUS)),
        JobStatus::INSTR_INVALID_ENC
    );
    let text = log.0.lock().unwrap().clone();
    assert!(
        text.contains("INSTR_INVALID_ENC") && text.contains("0x3000000"),
        "{text}"
    );
}
