// SPDX-License-Identifier: MIT OR Apache-2.0
//! MMU faults by level, entry and access.

use gpureplay_memory::Ram;
use mali_facts::registers::{FaultAccess, JobStatus, mmu};
use mali_model::Options;

use crate::machine::{Format, GPUS, JOBS, Machine};

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
    let absent = JobStatus::TRANSLATION_FAULT_0;
    let far = JobStatus::ADDR_SIZE_FAULT_OUT_0;
    let denied = JobStatus::PERMISSION_FAULT_0;
    let mut entries = Vec::new();
    for level in 0..4 {
        let mut add = |name, entry, refuses, family, at| {
            entries.push(Entry {
                name,
                level,
                entry,
                refuses,
                family,
                at,
            });
        };
        add("no entry", 0, ALL, absent, level);
        add("reserved", 2, ALL, absent, level);
        if level < 3 {
            add("table too far", TOO_LARGE | 3, ALL, far, level);
            let bus = JobStatus::TRANSTAB_BUS_FAULT_0;
            add("no table", NO_MEMORY | 3, ALL, bus, level + 1);
        }
        if level == 0 {
            add("block of 512 GiB", 1 | writable, ALL, absent, 0);
            continue;
        }
        let leaf = if level == 3 && !lpae { 3 } else { 1 };
        // Points to the page or block in which RAM starts.
        let page = Ram::BASE & !((1 << (39 - 9 * level)) - 1) | leaf;
        let data = page | writable | NEVER_EXECUTE;
        let [read, write, execute] = [&ALL[..1], &ALL[1..2], &ALL[2..]];
        add("read-only", page | readable, write, denied, level);
        add("no code", data, execute, denied, level);
        add("not readable", page | unreadable, read, denied, level);
        let leaf = leaf | writable;
        add("leaf too far", TOO_LARGE | leaf, ALL, far, level);
        // The bus answers late, and without a level.
        let late = JobStatus::DELAYED_BUS_FAULT;
        add("no memory", NO_MEMORY | leaf, ALL, late, 0);
        if !lpae {
            let untouched = page | writable & !(1 << 10);
            let flag = JobStatus::ACCESS_FLAG_0;
            add("not accessed", untouched, ALL, flag, level);
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
    machine.run(1, JOBS);

    let code = JobStatus(case.family.0 + case.at);
    machine.expect_failure(&name, code, FREE);
    let bus = matches!(
        case.family,
        JobStatus::TRANSTAB_BUS_FAULT_0 | JobStatus::DELAYED_BUS_FAULT
    );
    let interrupt = match bus {
        true => mmu::bus_error(0),
        false => mmu::page_fault(0),
    };
    machine.expect_mmu(&name, interrupt, (code, access, FREE));
    machine.expect_next(&name);
}
