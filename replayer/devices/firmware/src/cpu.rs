// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor (Arm DDI 0487).

use core::arch::asm;

use crate::machine::{RAM, RAM_SIZE};

const BLOCK: u64 = 1;
const ACCESSED: u64 = 1 << 10;
const INNER_SHAREABLE: u64 = 3 << 8;
const NO_EXECUTE: u64 = 3 << 53;
const GIGABYTE: usize = 1 << 30;

#[repr(C, align(4096))]
struct Table([u64; 512]);

#[unsafe(link_section = ".tables")]
static mut MAP: Table = Table([0; 512]);

/// Identity map in 1 GiB blocks (39-bit addresses): RAM cached, the rest device memory. Call once, before
/// interrupts are on.
pub fn start_mmu() {
    let table = &raw mut MAP;
    for index in 0..512usize {
        let address = (index * GIGABYTE) as u64;
        let ram = (RAM / GIGABYTE..=(RAM + RAM_SIZE - 1) / GIGABYTE).contains(&index);
        let attributes = if ram {
            INNER_SHAREABLE
        } else {
            1 << 2 | NO_EXECUTE
        };
        // SAFETY: one processor, no interrupts yet, and nobody else names MAP: the write is not shared.
        unsafe { (*table).0[index] = address | BLOCK | ACCESSED | attributes };
    }
    // SAFETY: the table maps every address to itself: code, stack and data stay.
    unsafe {
        asm!(
            "msr mair_el1, {mair}",
            "msr tcr_el1, {tcr}",
            "msr ttbr0_el1, {table}",
            "dsb sy",
            "isb",
            "tlbi vmalle1",
            "dsb sy",
            "isb",
            "mrs {scratch}, sctlr_el1",
            "orr {scratch}, {scratch}, {on}",
            "msr sctlr_el1, {scratch}",
            "isb",
            mair = in(reg) 0x04ffu64,
            // 39-bit addresses, 4 KiB granule, cached inner shareable walks, 40-bit physical addresses
            tcr = in(reg) 25u64 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 2 << 32,
            table = in(reg) table,
            on = in(reg) 1u64 | 1 << 2 | 1 << 12,
            scratch = out(reg) _,
        );
    }
}

/// Ticks of the virtual counter.
pub fn ticks() -> u64 {
    let value: u64;
    // SAFETY: reads a counter.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) value) };
    value
}

pub fn microseconds(ticks: u64) -> u64 {
    let frequency: u64;
    // SAFETY: reads a constant register.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) frequency) };
    let per_microsecond = (frequency / 1_000_000).max(1);
    ticks / per_microsecond
}

/// Starts the timer; `after` is in microseconds.
pub fn start_timer(after: u64) {
    let frequency: u64;
    // SAFETY: the virtual timer belongs to this image.
    unsafe {
        asm!("mrs {}, cntfrq_el0", out(reg) frequency);
        let ticks = after
            .saturating_mul((frequency / 1_000_000).max(1))
            .min(0x7fff_ffff);
        asm!("msr cntv_tval_el0, {}", "msr cntv_ctl_el0, {}", "isb", in(reg) ticks, in(reg) 1u64);
    }
}

pub fn stop_timer() {
    // SAFETY: the virtual timer belongs to this image.
    unsafe { asm!("msr cntv_ctl_el0, xzr", "isb") };
}

/// Asks `ready` with interrupts masked, so none is missed.
pub fn sleep_unless(ready: impl Fn() -> bool) {
    // SAFETY: masks and unmasks interrupts; the handler touches atomics and devices only.
    unsafe {
        asm!("msr daifset, #2");
        if !ready() {
            asm!("wfi");
        }
        asm!("msr daifclr, #2", "isb");
    }
}

/// Earlier writes reach devices; later reads are fresh.
pub fn barrier() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb sy") };
}

/// PSCI SYSTEM_OFF by hypervisor call.
pub fn power_off() -> ! {
    // SAFETY: the call does not return; without it, the processor sleeps for ever, interrupts masked.
    unsafe {
        asm!("hvc #0", in("x0") 0x8400_0008u64);
        loop {
            asm!("msr daifset, #15", "wfi");
        }
    }
}
