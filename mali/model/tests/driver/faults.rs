// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults, and the next job.

use std::fmt;
use std::sync::{Arc, Mutex};

use mali_facts::JobType;
use mali_facts::registers::{
    AddressSpaceCommand, FaultAccess, JobStatus, address_space, gpu, job, mmu,
};
use mali_model::{Level, Log, Options};

use crate::machine::{BIFROST, CODE, CONFIG, DATA, Format, JOBS, Machine, NOWHERE, Rights};

type Prepare = fn(&mut Machine);

struct Case {
    name: &'static str,
    prepare: Prepare,
    status: JobStatus,
    mmu: Option<(u64, FaultAccess)>,
}

const fn of_job(name: &'static str, status: JobStatus, prepare: Prepare) -> Case {
    Case {
        name,
        prepare,
        status,
        mmu: None,
    }
}

const fn of_access(
    name: &'static str,
    status: JobStatus,
    (address, access): (u64, FaultAccess),
    prepare: Prepare,
) -> Case {
    Case {
        mmu: Some((address, access)),
        ..of_job(name, status, prepare)
    }
}

const READ: FaultAccess = FaultAccess::Read;
const WRITE: FaultAccess = FaultAccess::Write;

const CASES: &[Case] = &[
    of_job("type 0", JobStatus::JOB_CONFIG_FAULT, |m| {
        m.memory.job(JOBS, JobType::NotStarted, 0)
    }),
    of_job("type 99", JobStatus::JOB_CONFIG_FAULT, |m| {
        m.memory.write32(JOBS + 16, 1 | 99 << 1)
    }),
    of_job("tiler job", JobStatus::JOB_CONFIG_FAULT, |m| {
        m.memory.job(JOBS, JobType::Tiler, 0)
    }),
    of_job("32-bit descriptor", JobStatus::JOB_CONFIG_FAULT, |m| {
        m.memory.write32(JOBS + 16, 4 << 1)
    }),
    of_job("value of no type", JobStatus::JOB_CONFIG_FAULT, |m| {
        m.memory.write_value_job(JOBS, DATA, 1, 0);
        m.memory.write32(JOBS + 40, 9);
    }),
    of_access(
        "value to nowhere",
        JobStatus::TRANSLATION_FAULT_1,
        (NOWHERE, WRITE),
        |m| m.memory.write_value_job(JOBS, NOWHERE, 1, 0),
    ),
    of_access(
        "value to a read-only page",
        JobStatus::PERMISSION_FAULT_3,
        (DATA + 16, WRITE),
        |m| {
            m.memory.map(DATA, 1, Rights::ReadOnly);
            m.memory.write_value_job(JOBS, DATA + 16, 1, 0);
        },
    ),
    of_access(
        "state that is not mapped",
        JobStatus::TRANSLATION_FAULT_3,
        (DATA + 0x10_0000, READ),
        |m| m.memory.write64(JOBS + 64 + 14 * 4, DATA + 0x10_0000),
    ),
    of_access(
        "shader that is not mapped",
        JobStatus::TRANSLATION_FAULT_3,
        (CODE + 0x1000, FaultAccess::Execute),
        |m| m.memory.write64(JOBS + 0x100, CODE + 0x1000),
    ),
    of_access(
        "shader in data",
        JobStatus::PERMISSION_FAULT_3,
        (DATA, FaultAccess::Execute),
        |m| m.memory.write64(JOBS + 0x100, DATA),
    ),
    of_access(
        "load from nowhere",
        JobStatus::TRANSLATION_FAULT_1,
        (NOWHERE, READ),
        |m| m.memory.write64(JOBS + 0x180, NOWHERE),
    ),
    of_access(
        "load past the last page",
        JobStatus::TRANSLATION_FAULT_3,
        (DATA + 0x1_0000, READ),
        |m| m.memory.write64(JOBS + 0x188, DATA + 0x1_0000 - 8),
    ),
    of_access(
        "store to a read-only page",
        JobStatus::PERMISSION_FAULT_3,
        (DATA + 0x2000, WRITE),
        |m| m.memory.map(DATA + 0x2000, 1, Rights::ReadOnly),
    ),
    of_job("work group too large", JobStatus::DATA_INVALID_FAULT, |m| {
        m.memory.write32(JOBS + 32, 1023);
        m.memory
            .write32(JOBS + 36, 10 | 10 << 5 | 10 << 10 | 10 << 16 | 10 << 22);
    }),
    of_job("shifts out of order", JobStatus::DATA_INVALID_FAULT, |m| {
        m.memory.write32(JOBS + 36, 5)
    }),
    of_job("cores off", JobStatus::JOB_POWER_FAULT, |m| {
        let cores = m.gpu.read32(gpu::SHADER_PRESENT_LO);
        m.gpu.write32(gpu::SHADER_PWROFF_LO, cores);
    }),
    of_job("cache off", JobStatus::JOB_POWER_FAULT, |m| {
        m.gpu.write32(gpu::L2_PWROFF_LO, 1)
    }),
];

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
    machine.run(1, JOBS);
    let pointer = case.mmu.map_or(JOBS, |(address, _)| address);
    machine.expect_failure(&name, case.status, pointer);
    match case.mmu {
        Some((address, access)) => {
            let fault = (case.status, access, address);
            machine.expect_mmu(&name, mmu::page_fault(0), fault);
        }
        None => assert_eq!(machine.mmu_interrupts(), 0, "{name}"),
    }
    machine.power_on();
    machine.memory.map(DATA, 16, Rights::ReadWrite);
    machine.expect_next(&name);
}

#[test]
fn chains_that_cannot_be_read() {
    let (unread, wrong) = (JobStatus::JOB_READ_FAULT, JobStatus::JOB_CONFIG_FAULT);
    for (head, config, status, mmu) in [
        (NOWHERE, CONFIG, unread, mmu::page_fault(0)),
        (0, CONFIG, unread, mmu::page_fault(0)),
        (JOBS + 32, CONFIG, wrong, 0),
        // Space 5 is not set up; space 15 does not exist.
        (JOBS, CONFIG | 5, unread, mmu::page_fault(5)),
        (JOBS, CONFIG | 15, unread, mmu::page_fault(15)),
    ] {
        let mut machine = Machine::new();
        machine.memory.write_value_job(JOBS, DATA, 1, 0);
        machine.submit(1, head, config);
        machine.gpu.run();
        let name = format!("{head:#x} {config:#x}");
        assert_eq!(machine.status(1), status, "{name}");
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
    assert_eq!(machine.run(1, JOBS), JobStatus::JOB_WRITE_FAULT);
    assert_eq!(machine.mmu_fault().0.code(), JobStatus::PERMISSION_FAULT_3);
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
        assert_eq!(machine.status(slot), status, "{slot} {cores}");
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
        let status = machine.run(1, JOBS);
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
        assert_eq!(
            machine.run(slot, JOBS),
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
    machine.write64(address_space::offset(0, address_space::TRANSTAB_LO), 0);
    assert_eq!(machine.run(1, JOBS), JobStatus::DONE, "not before UPDATE");
    machine.space_command(AddressSpaceCommand::Update);
    machine.clear_interrupts();
    machine.run(1, JOBS);
    assert_eq!(machine.mmu_fault().0.code(), JobStatus::TRANSLATION_FAULT_0);
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
    assert_eq!(machine.run(1, JOBS), JobStatus::INSTR_INVALID_ENC);
    let text = log.0.lock().unwrap().clone();
    assert!(
        text.contains("INSTR_INVALID_ENC") && text.contains("0x3000000"),
        "{text}"
    );
}
