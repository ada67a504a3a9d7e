// SPDX-License-Identifier: MIT OR Apache-2.0
//! Register traffic and chains: no panic, no hang, no store outside mapped pages. (Registers choose the tables, so
//! reads may go to all of memory.)
#![no_main]

#[path = "support/machine.rs"]
mod support;

use mali_facts::registers::{GpuCommand, gpu};
use support::{CONFIG, Format, JOBS, Watched};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(first) = bytes.first() else {
        return;
    };
    let mut watched = Watched::new(first >> 3, Format::Lpae);
    let machine = &mut watched.machine;
    for access in bytes.chunks_exact(7).take(500) {
        let offset = u32::from(u16::from_le_bytes([access[1], access[2]])) & 0x3fff;
        let value = u32::from_le_bytes([access[3], access[4], access[5], access[6]]);
        match access[0] % 8 {
            0 => _ = machine.gpu.read32(offset),
            1 => machine.submit(value & 3, JOBS, CONFIG ^ value >> 8),
            2 => _ = machine.gpu.run(),
            3 => machine.gpu.poll_faults(),
            _ => machine.gpu.write32(offset & !3, value),
        }
        let _ = machine.gpu.irq();
    }
    machine.gpu.run();
    machine.gpu.write32(gpu::GPU_CMD, GpuCommand::SoftReset as u32);
    assert!(!machine.gpu.has_work(), "a reset leaves nothing to run");
    watched.check_canary();
});
