// SPDX-License-Identifier: MIT OR Apache-2.0
//! MMU faults by level, entry and access.

use gpureplay_memory::Ram;
use mali_facts::registers::{
    FaultAccess, FaultStatus, JobStatus, address_space, job, job_slot, mmu,
};
use mali_model::Options;

use crate::machine::{CONFIG, Format, GPUS, JOBS, Machine};

/// Of [`crate::machine::PageMemory::compute_job`], by access.
const POINTERS: [(FaultAccess, u64); 3] = [
    (FaultAccess::Read, JOBS + 0x180),
    (FaultAccess::Write, JOBS + 0x190),
    (FaultAccess::Execute, JOBS + 0x100),
];

/// Covered by no table.
const FREE: u64 = 0x85_4020_5000;
/// Inside and outside of physical 40 bits.
const NO_MEMORY: u64 = 0x80_0000_0000;
const TOO_LARGE: u64 = 1 << 41;
const NEVER_EXECUTE: u64 = 1 << 54;

/// And accesses that it refuses.
struct Entry {
    name: &'static str,
    level: u32,
    entry: u64,
    refuses: &'static [FaultAccess],
    family: JobStatus,
    at: u32,
}

const ALL: &[FaultAccess] = &[FaultAccess::Read, FaultAccess::Write, FaultAccess::Execute];

fn entries(format: Format) -> Vec<Entry> {
    let lpae = format == Format::Lpae;
    let (readable, writable) = match format {
        Format::Lpae => (1 << 6, 3 << 6),
        // Access flag, unprivileged, and bit 7 against stores.
        Format::AArch64 => (1 << 10 | 3 << 6, 1 << 10 | 1 << 6),
    };
    let unreadable = if lpae { 1 << 7 } else { 1 << 10 };
    let mut entries = Vec::new();
    let mut add = |name, level, entry, refuses, family, at| {
        entries.push(Entry {
            name,
            level,
            entry,
            refuses,
            family,
            at,
        });
    };
    for level in 0..4 {
        add(
            "no entry",
            level,
            0,
            ALL,
            JobStatus::TRANSLATION_FAULT_0,
            level,
        );
        // Type 2 does not exist.
        add(
            "reserved",
            level,
            2,
            ALL,
            JobStatus::TRANSLATION_FAULT_0,
            level,
        );
        if level < 3 {
            add(
                "table too far",
                level,
                TOO_LARGE | 3,
                ALL,
                JobStatus::ADDR_SIZE_FAULT_OUT_0,
                level,
            );
            add(
                "no table",
                level,
                NO_MEMORY | 3,
                ALL,
                JobStatus::TRANSTAB_BUS_FAULT_0,
                level + 1,
            );
        }
        if level == 0 {
            add(
                "block of 512 GiB",
                0,
                1 | writable,
                ALL,
                JobStatus::TRANSLATION_FAULT_0,
                0,
            );
            continue;
        }
        let leaf = if level == 3 && !lpae { 3 } else { 1 };
        // The first page has the same place in a block as in memory.
        let page = Ram::BASE & !((1 << (39 - 9 * level)) - 1) | leaf;
        let denied = JobStatus::PERMISSION_FAULT_0;
        add(
            "read-only",
            level,
            page | readable,
            &[FaultAccess::Write],
            denied,
            level,
        );
        add(
            "no code",
            level,
            page | writable | NEVER_EXECUTE,
            &[FaultAccess::Execute],
            denied,
            level,
        );
        add(
            "not readable",
            level,
            page | unreadable,
            &[FaultAccess::Read],
            denied,
            level,
        );
        add(
            "leaf too far",
            level,
            TOO_LARGE | leaf | writable,
            ALL,
            JobStatus::ADDR_SIZE_FAULT_OUT_0,
            level,
        );
        // The bus answers late, and without a level.
        add(
            "no memory",
            level,
            NO_MEMORY | leaf | writable,
            ALL,
            JobStatus::DELAYED_BUS_FAULT,
            0,
        );
        if !lpae {
            let untouched = page | writable & !(1 << 10);
            add(
                "not accessed",
                level,
                untouched,
                ALL,
                JobStatus::ACCESS_FLAG_0,
                level,
            );
        }
    }
    entries
}

#[test]
fn entries_of_every_level_fault_by_access() {
    for gpu in GPUS {
        for format in [Format::Lpae, Format::AArch64] {
            for case in entries(format) {
                for (access, pointer) in POINTERS {
                    if case.refuses.contains(&access) {
                        check(gpu, format, &case, access, pointer);
                    }
                }
            }
        }
    }
}

/// At `pointer`; then the next job.
fn check(gpu: &str, format: Format, case: &Entry, access: FaultAccess, pointer: u64) {
    let name = format!(
        "{gpu}, {format:?}, level {}: {}, {access:?}",
        case.level, case.name
    );
    let mut machine = Machine::with(gpu, format, Options::default());
    machine.memory.compute_job(JOBS, 64, 0);
    machine.memory.set_entry(FREE, case.level, case.entry);
    let pointer = match access {
        FaultAccess::Execute => machine.memory.code_pointer(pointer),
        _ => pointer,
    };
    machine.memory.write64(pointer, FREE);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();

    let code = JobStatus(case.family.0 + case.at);
    let status = JobStatus(machine.slot(1, job_slot::STATUS));
    assert_eq!(status, code, "{name}: got {status}");
    assert_eq!(machine.memory.read32(JOBS) & 0xff, code.0, "{name}: header");
    assert_eq!(
        machine.memory.read64(JOBS + 8),
        FREE,
        "{name}: fault pointer"
    );
    assert_eq!(machine.tail(1), JOBS, "{name}");
    let bus = matches!(
        case.family,
        JobStatus::TRANSTAB_BUS_FAULT_0 | JobStatus::DELAYED_BUS_FAULT
    );
    let interrupt = if bus {
        mmu::bus_error(0)
    } else {
        mmu::page_fault(0)
    };
    assert_eq!(
        (machine.job_interrupts(), machine.mmu_interrupts()),
        (job::failed(1), interrupt),
        "{name}"
    );
    let shown = FaultStatus(
        machine
            .gpu
            .read32(address_space::offset(0, address_space::FAULTSTATUS)),
    );
    assert_eq!(
        (shown.code(), shown.access()),
        (code, access),
        "{name}: {shown}"
    );
    let address = machine.read64(address_space::offset(0, address_space::FAULTADDRESS_LO));
    assert_eq!(address, FREE, "{name}");

    machine.clear_interrupts();
    machine.memory.compute_job(JOBS, 64, 0);
    machine.submit(1, JOBS, CONFIG);
    machine.gpu.run();
    let status = JobStatus(machine.slot(1, job_slot::STATUS));
    assert_eq!(status, JobStatus::DONE, "{name}: the next job: {status}");
    machine.memory.expect_sums(64);
}
