// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares C kernel modules' constants with `mali/`; refuses others.

mod macros;

use std::collections::BTreeSet;
use std::path::Path;

use macros::Macros;
use mali_facts::page_table::{ENTRIES, Entry, LEVELS};
use mali_facts::registers::{
    ADDRESS_SPACES, Access, Class, GpuCommand, GpuInterrupt, JOB_SLOTS, JobCommand, JobConfig,
    LegacyMode, TranslationConfig, TranslationMode, TranslationTable, WINDOW_SIZE, address_space,
    gpu, job, job_slot, lookup, mmu,
};

const PREFIXES: &[&str] = &[
    "ADDRESS_SPACE",
    "AS0_",
    "AS_",
    "ENTRIES",
    "ENTRY_",
    "GPU_",
    "INT_",
    "JOB_INT_",
    "JOB_SLOT",
    "JS_",
    "L2_",
    "LAST_LEVEL",
    "MALI_",
    "MMU_",
    "PWR_",
    "TRANSCFG_",
    "TRANSTAB_",
];

/// Each value has its macro, and each macro about hardware a value. Callers compare macros with parameters.
fn compare(macros: &Macros, values: &[(&str, u64)], calls: &[&str]) {
    for &(name, value) in values {
        assert_eq!(macros.value(name), Some(value), "{name}");
    }
    let known: BTreeSet<&str> = values
        .iter()
        .map(|(name, _)| *name)
        .chain(calls.iter().copied())
        .collect();
    for name in macros.names() {
        let hardware = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        assert!(
            !hardware || known.contains(name),
            "{name} is compared with nothing"
        );
    }
}

#[test]
fn recorder() {
    let macros = Macros::of_folder("driver-patch/recorder");
    for slot in 0..JOB_SLOTS {
        let call = |name| macros.call(name, slot.into());
        assert_eq!(call("JOB_SLOT"), Some(job_slot::offset(slot, 0).into()));
        assert_eq!(call("JOB_INT_DONE"), Some(job::done(slot).into()));
        assert_eq!(call("JOB_INT_FAILED"), Some(job::failed(slot).into()));
        assert_eq!(
            call("JOB_INT_SLOT"),
            Some((job::done(slot) | job::failed(slot)).into())
        );
    }
    for space in 0..ADDRESS_SPACES {
        let found = macros.call("ADDRESS_SPACE", space.into());
        assert_eq!(found, Some(address_space::offset(space, 0).into()));
    }
    for field in 0..32 {
        let bits = match macros.call("TRANSCFG_INA_BITS", field << 6) {
            Some(0) => 48,
            found => 55 - found.expect("a number"),
        };
        assert_eq!(u64::from(TranslationConfig(field << 6).input_bits()), bits);
    }
    let value = |name| macros.value(name).expect("a number");
    for mode in 0..=value("TRANSTAB_MODE") {
        let table = TranslationTable(mode).legacy_mode() == LegacyMode::Table;
        assert_eq!(mode == value("TRANSTAB_MODE_TABLE"), table);
    }
    for mode in 0..=value("TRANSCFG_MODE") {
        for (name, expected) in [
            ("TRANSCFG_MODE_LEGACY", TranslationMode::Legacy),
            ("TRANSCFG_MODE_UNMAPPED", TranslationMode::Unmapped),
            ("TRANSCFG_MODE_AARCH64_4K", TranslationMode::AArch64With4K),
        ] {
            let found = TranslationConfig(mode).mode() == expected;
            assert_eq!(mode == value(name), found, "{name}");
        }
    }
    let values = [
        ("MALI_REGISTERS", WINDOW_SIZE),
        ("GPU_ID", gpu::GPU_ID),
        ("GPU_MMU_FEATURES", gpu::MMU_FEATURES),
        ("GPU_AFBC_FEATURES", gpu::AFBC_FEATURES),
        ("GPU_THREAD_MAX_THREADS", gpu::THREAD_MAX_THREADS),
        ("GPU_SHADER_PRESENT", gpu::SHADER_PRESENT_LO),
        ("GPU_TILER_PRESENT", gpu::TILER_PRESENT_LO),
        ("GPU_L2_PRESENT", gpu::L2_PRESENT_LO),
        ("GPU_COHERENCY_FEATURES", gpu::COHERENCY_FEATURES),
        ("GPU_THREAD_TLS_ALLOC", gpu::THREAD_TLS_ALLOC),
        ("GPU_STACK_PRESENT", gpu::STACK_PRESENT_LO),
        ("GPU_COMMAND", gpu::GPU_CMD),
        ("GPU_COMMAND_SOFT_RESET", GpuCommand::SoftReset as u32),
        ("GPU_COMMAND_HARD_RESET", GpuCommand::HardReset as u32),
        ("JOB_INT_RAWSTAT", job::JOB_INT_RAWSTAT),
        ("JOB_INT_CLEAR", job::JOB_INT_CLEAR),
        ("JOB_INT_STAT", job::JOB_INT_STAT),
        ("JOB_SLOTS", JOB_SLOTS),
        ("JOB_SLOTS_END", job_slot::offset(JOB_SLOTS, 0)),
        ("JS_STATUS", job_slot::STATUS),
        ("JS_HEAD_NEXT", job_slot::HEAD_NEXT_LO),
        ("JS_CONFIG_NEXT", job_slot::CONFIG_NEXT),
        ("JS_CONFIG_AS", JobConfig(u32::MAX).address_space()),
        ("JS_COMMAND_NEXT", job_slot::COMMAND_NEXT),
        ("JS_COMMAND_START", JobCommand::Start as u32),
        ("ADDRESS_SPACES", ADDRESS_SPACES),
        (
            "ADDRESS_SPACES_END",
            address_space::offset(ADDRESS_SPACES, 0),
        ),
        ("AS_TRANSTAB", address_space::TRANSTAB_LO),
        ("AS_TRANSCFG", address_space::TRANSCFG_LO),
        ("LAST_LEVEL", LEVELS - 1),
        ("ENTRIES", ENTRIES as u32),
    ];
    let entries = [
        ("ENTRY_ADDRESS", Entry::ADDRESS),
        ("ENTRY_TYPE", Entry::TYPE),
        ("ENTRY_BIT_6", Entry::LPAE_READ),
        ("ENTRY_BIT_6", Entry::AARCH64_USER),
        ("ENTRY_BIT_7", Entry::LPAE_WRITE),
        ("ENTRY_BIT_7", Entry::AARCH64_READ_ONLY),
        ("ENTRY_NO_EXEC", Entry::EXECUTE_NEVER),
    ];
    let values = values.map(|(name, value)| (name, u64::from(value)));
    let calls = [
        "JOB_INT_DONE",
        "JOB_INT_FAILED",
        "JOB_INT_SLOT",
        "JOB_SLOT",
        "ADDRESS_SPACE",
        "TRANSCFG_INA_BITS",
        "TRANSTAB_MODE",
        "TRANSTAB_MODE_TABLE",
        "TRANSCFG_MODE",
        "TRANSCFG_MODE_LEGACY",
        "TRANSCFG_MODE_UNMAPPED",
        "TRANSCFG_MODE_AARCH64_4K",
    ];
    compare(&macros, &[&values[..], &entries].concat(), &calls);
}

#[test]
fn nano_driver() {
    let macros = Macros::of_folder("nano-driver");
    let space = |register| address_space::offset(0, register);
    let values = [
        ("GPU_ID", gpu::GPU_ID),
        ("COHERENCY_ENABLE", gpu::COHERENCY_ENABLE),
        ("JM_CONFIG", gpu::JM_CONFIG),
        ("SHADER_CONFIG", gpu::SHADER_CONFIG),
        ("TILER_CONFIG", gpu::TILER_CONFIG),
        ("L2_MMU_CONFIG", gpu::L2_MMU_CONFIG),
        ("GPU_MMU_FEATURES", gpu::MMU_FEATURES),
        ("GPU_INT_RAWSTAT", gpu::GPU_INT_RAWSTAT),
        ("GPU_INT_RESET_DONE", GpuInterrupt::RESET_COMPLETED.bits()),
        ("GPU_COMMAND", gpu::GPU_CMD),
        ("GPU_COMMAND_SOFT_RESET", GpuCommand::SoftReset as u32),
        ("GPU_COMMAND_HARD_RESET", GpuCommand::HardReset as u32),
        ("GPU_COMMAND_CLEAN", GpuCommand::CleanCaches as u32),
        (
            "GPU_INT_CLEANED",
            GpuInterrupt::CLEAN_CACHES_COMPLETED.bits(),
        ),
        ("JOB_INT_JS_STATE", job::JOB_INT_JS_STATE),
        ("L2_READY", gpu::L2_READY_LO),
        ("PWR_KEY", gpu::PWR_KEY),
        ("PWR_KEY_UNLOCK", gpu::PWR_KEY_UNLOCK),
        ("PWR_OVERRIDE1", gpu::PWR_OVERRIDE1),
        ("JOB_INT_RAWSTAT", job::JOB_INT_RAWSTAT),
        ("MMU_INT_RAWSTAT", mmu::MMU_INT_RAWSTAT),
        ("INT_CLEAR", gpu::GPU_INT_CLEAR - gpu::GPU_INT_RAWSTAT),
        ("INT_CLEAR", job::JOB_INT_CLEAR - job::JOB_INT_RAWSTAT),
        ("INT_CLEAR", mmu::MMU_INT_CLEAR - mmu::MMU_INT_RAWSTAT),
        ("INT_MASK", gpu::GPU_INT_MASK - gpu::GPU_INT_RAWSTAT),
        ("INT_MASK", job::JOB_INT_MASK - job::JOB_INT_RAWSTAT),
        ("INT_MASK", mmu::MMU_INT_MASK - mmu::MMU_INT_RAWSTAT),
        ("INT_STAT", gpu::GPU_INT_STAT - gpu::GPU_INT_RAWSTAT),
        ("INT_STAT", job::JOB_INT_STAT - job::JOB_INT_RAWSTAT),
        ("INT_STAT", mmu::MMU_INT_STAT - mmu::MMU_INT_RAWSTAT),
        ("AS0_TRANSTAB", space(address_space::TRANSTAB_LO)),
        ("AS0_MEMATTR", space(address_space::MEMATTR_LO)),
        ("AS0_COMMAND", space(address_space::COMMAND)),
        ("AS0_FAULTSTATUS", space(address_space::FAULTSTATUS)),
        ("AS0_FAULTADDRESS", space(address_space::FAULTADDRESS_LO)),
        ("AS0_STATUS", space(address_space::STATUS)),
    ];
    // Of one maker's chips; not in the register map.
    let calls = ["PWR_OVERRIDE1_AMLOGIC"];
    compare(
        &macros,
        &values.map(|(name, value)| (name, value.into())),
        &calls,
    );
}

/// First and last register per rule.
fn rules(source: &str, table: &str) -> Vec<(u32, u32)> {
    let (_, rest) = source.split_once(&format!("{table}[] = {{")).expect(table);
    let (rows, _) = rest.split_once("\n};").expect(table);
    let number =
        |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).expect(table);
    let rules = rows.lines().filter_map(|row| row.trim().strip_prefix('{'));
    rules
        .map(|rule| {
            let mut parts = rule.split(',');
            let mut next = || number(parts.next().expect(table));
            (next(), next())
        })
        .collect()
}

/// The guard lets through no address spaces and no commands of the whole GPU.
#[test]
fn guard_of_the_nano_driver() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nano-driver/guard.c");
    let source = std::fs::read_to_string(path).expect("guard.c");
    let slots = rules(&source, "nano_slot_rules");
    let slots = slots
        .iter()
        .map(|(first, last)| (job_slot::offset(0, *first), job_slot::offset(0, *last)));
    let mut seen = 0;
    for (first, last) in rules(&source, "nano_rules").into_iter().chain(slots) {
        let registers = (first..=last).step_by(4).filter_map(lookup);
        let registers: Vec<_> = registers.map(|located| located.register).collect();
        assert!(!registers.is_empty(), "{first:#x}: no register");
        for register in &registers {
            let writable = register.access != Access::Read;
            let class = matches!(
                register.class,
                Class::Interrupt | Class::Power | Class::Quirk | Class::JobSlot | Class::Doorbell
            );
            assert!(writable && class, "{first:#x}: {register:?}");
        }
        seen += registers.len();
    }
    assert!(seen > 25, "{seen} registers");
}
