// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identity, reset, power, interrupts, counters.

use std::sync::Arc;

use gpureplay_memory::Ram;
use mali_facts::registers::{
    Access, Class, GpuCommand, GpuInterrupt, address_space, all, gpu, job, mmu,
};
use mali_model::{Gpu, IrqLines, Options, PROFILES, Profile};

use crate::machine::{DATA, Machine, NOWHERE};

fn gpu_named(name: &str) -> Gpu<Ram> {
    Gpu::new(
        Profile::by_name(name).unwrap(),
        Arc::new(Ram::new(16).unwrap()),
        Options::default(),
    )
}

#[test]
fn identity_is_the_profiles_and_cannot_be_written() {
    for profile in PROFILES {
        let mut gpu = gpu_named(profile.name);
        let expected: Vec<_> = all()
            .filter(|register| register.class() == Class::Identity)
            .map(|register| (register.offset(), gpu.read32(register.offset())))
            .collect();
        for (offset, value) in profile.identity() {
            assert!(
                expected.contains(&(offset, value)),
                "{} {offset:#x}",
                profile.name
            );
        }
        for (offset, value) in expected {
            gpu.write32(offset, !value);
            assert_eq!(gpu.read32(offset), value, "{} {offset:#x}", profile.name);
        }
    }
}

#[test]
fn reset_restores_every_register() {
    let steady = |class| !matches!(class, Class::Nondeterministic | Class::Identity);
    let mut gpu = gpu_named("g52");
    for register in all().filter(|register| register.register.access != Access::Read) {
        if !matches!(register.class(), Class::Command | Class::Doorbell) {
            gpu.write32(register.offset(), 0xffff_fff0);
        }
    }
    assert_eq!(gpu.read32(gpu::TILER_CONFIG), 0xffff_fff0);
    assert_ne!(
        gpu.read32(gpu::SHADER_READY_LO),
        0x3,
        "bits 0 to 3 were not written"
    );
    gpu.write32(gpu::GPU_CMD, GpuCommand::SoftReset as u32);
    for register in all().filter(|register| steady(register.class())) {
        let expected = match register.offset() {
            gpu::GPU_INT_RAWSTAT => GpuInterrupt::RESET_COMPLETED.bits(),
            _ => register.register.reset,
        };
        assert_eq!(gpu.read32(register.offset()), expected, "{register}");
    }
    assert_eq!(gpu.irq(), IrqLines::default());
}

#[test]
fn units_switch_on_and_off() {
    let mut gpu = gpu_named("g76");
    let changed = (GpuInterrupt::POWER_CHANGED_SINGLE | GpuInterrupt::POWER_CHANGED_ALL).bits();
    for (register, value, ready, expected, interrupts) in [
        (gpu::L2_PWRON_LO, u32::MAX, gpu::L2_READY_LO, 1, changed),
        (gpu::L2_PWRON_LO, 1, gpu::L2_READY_LO, 1, 0),
        (
            gpu::SHADER_PWRON_LO,
            0x3,
            gpu::SHADER_READY_LO,
            0x3,
            changed,
        ),
        (
            gpu::SHADER_PWRON_LO,
            u32::MAX,
            gpu::SHADER_READY_LO,
            0xffff,
            changed,
        ),
        (gpu::SHADER_PWRON_HI, u32::MAX, gpu::SHADER_READY_HI, 0, 0),
        (
            gpu::SHADER_PWROFF_LO,
            0xff,
            gpu::SHADER_READY_LO,
            0xff00,
            changed,
        ),
        (gpu::TILER_PWRON_LO, 1, gpu::TILER_READY_LO, 1, changed),
        (gpu::STACK_PWRON_LO, 1, gpu::STACK_READY_LO, 0, 0),
        (gpu::L2_PWROFF_LO, 1, gpu::L2_READY_LO, 0, changed),
    ] {
        gpu.write32(gpu::GPU_INT_CLEAR, u32::MAX);
        gpu.write32(register, value);
        assert_eq!(gpu.read32(ready), expected, "{register:#x}");
        assert_eq!(
            gpu.read32(gpu::GPU_INT_RAWSTAT),
            interrupts,
            "{register:#x}"
        );
        assert_eq!(gpu.read32(ready + 0xc0), 0, "PWRTRANS");
    }
}

#[test]
fn masks_decide_what_reaches_the_line() {
    let mut gpu = gpu_named("g52");
    gpu.write32(gpu::GPU_CMD, GpuCommand::CleanCaches as u32);
    let clean = GpuInterrupt::CLEAN_CACHES_COMPLETED.bits();
    for (mask, stat) in [(0, 0), (!clean, 0), (clean, clean), (u32::MAX, clean)] {
        gpu.write32(gpu::GPU_INT_MASK, mask);
        assert_eq!(gpu.read32(gpu::GPU_INT_STAT), stat);
        assert_eq!(gpu.irq().gpu, stat != 0, "{mask:#x}");
    }
    gpu.write32(gpu::GPU_INT_CLEAR, !clean);
    assert!(gpu.irq().gpu, "other bits were cleared");
    gpu.write32(gpu::GPU_INT_CLEAR, clean);
    assert_eq!(
        (gpu.irq().any(), gpu.read32(gpu::GPU_INT_RAWSTAT)),
        (false, 0)
    );
}

#[test]
fn each_block_has_a_line_of_its_own() {
    let mut machine = Machine::new();
    machine.submit(1, NOWHERE, 0);
    machine.gpu.run();
    let none = IrqLines::default();
    for (mask, expected) in [
        (gpu::GPU_INT_MASK, IrqLines { gpu: true, ..none }),
        (job::JOB_INT_MASK, IrqLines { job: true, ..none }),
        (mmu::MMU_INT_MASK, IrqLines { mmu: true, ..none }),
    ] {
        machine.gpu.write32(mask, u32::MAX);
        assert_eq!(machine.gpu.irq(), expected);
        machine.gpu.write32(mask, 0);
    }
}

#[test]
fn flush_ids_advance_with_flushes() {
    let mut gpu = gpu_named("g31");
    let before = gpu.read32(gpu::LATEST_FLUSH_ID);
    gpu.write32(gpu::GPU_CMD, GpuCommand::CleanInvalidateCaches as u32);
    assert_ne!(gpu.read32(gpu::LATEST_FLUSH_ID), before);
}

#[test]
fn the_cycle_counter_runs_between_start_and_stop() {
    let mut gpu = gpu_named("g52");
    let cycles = |gpu: &mut Gpu<Ram>| {
        u64::from(gpu.read32(gpu::CYCLE_COUNT_LO))
            | u64::from(gpu.read32(gpu::CYCLE_COUNT_HI)) << 32
    };
    assert_eq!(cycles(&mut gpu), 0);
    gpu.write32(gpu::GPU_CMD, GpuCommand::CycleCountStart as u32);
    let first = cycles(&mut gpu);
    while cycles(&mut gpu) == first {}
    assert_eq!(gpu.read32(gpu::GPU_STATUS), 1 << 6);
    gpu.write32(gpu::GPU_CMD, GpuCommand::CycleCountStop as u32);
    assert_eq!((cycles(&mut gpu), gpu.read32(gpu::GPU_STATUS)), (0, 0));
}

#[test]
fn counter_samples_are_dumped_as_zeros() {
    let mut machine = Machine::new();
    let size = (1 + 1 + 1 + 2) * 256;
    machine.memory.write(DATA, &vec![0xff; size + 4]);
    machine.gpu.write32(gpu::PRFCNT_BASE_LO, DATA as u32);
    machine.gpu.write32(gpu::PRFCNT_CONFIG, 1);
    machine.gpu.write32(gpu::PRFCNT_SHADER_EN, 0xabcd);
    machine.gpu.write32(gpu::GPU_INT_CLEAR, u32::MAX);
    machine.command(GpuCommand::CounterSample);
    let sampled = GpuInterrupt::PRFCNT_SAMPLE_COMPLETED.bits();
    assert_eq!(machine.gpu.read32(gpu::GPU_INT_RAWSTAT), sampled);
    assert_eq!(machine.memory.read32(DATA + 12), 0);
    assert_eq!(
        machine.memory.read32(DATA + 4 * 256 + 8),
        0xabcd,
        "enable mask of the last core"
    );
    assert_eq!(
        machine.memory.read32(DATA + size as u64),
        u32::MAX,
        "nothing beyond the dump"
    );
    machine.gpu.write32(gpu::PRFCNT_BASE_HI, 0x7f);
    machine.command(GpuCommand::CounterSample);
    assert_eq!(machine.mmu_interrupts(), mmu::page_fault(0));
    let address = address_space::offset(0, address_space::FAULTADDRESS_HI);
    assert_eq!(machine.gpu.read32(address), 0x7f);
}

#[test]
fn any_offset_can_be_accessed() {
    let mut gpu = gpu_named("g52");
    for offset in (0..0x1_0000).chain([u32::MAX, u32::MAX - 3]) {
        gpu.read32(offset);
        gpu.write32(offset, u32::MAX);
        gpu.write32(offset, 0);
    }
}
