// SPDX-License-Identifier: MIT OR Apache-2.0
//! GICv3 for one processor (Arm IHI 0069).

use core::arch::asm;

use crate::machine::{GIC_DISTRIBUTOR, GIC_REDISTRIBUTOR, read32, write32};

const CONTROL: usize = GIC_DISTRIBUTOR;
const WAKER: usize = GIC_REDISTRIBUTOR + 0x14;
const PRIVATE: usize = GIC_REDISTRIBUTOR + 0x1_0000;
const GROUP: usize = 0x80;
const SET_ENABLE: usize = 0x100;
const CLEAR_ENABLE: usize = 0x180;
const AFFINITY_ROUTING_GROUP_1: u32 = 1 << 4 | 1 << 1;
/// Interrupt ids from here on: nothing is pending.
const SPURIOUS: u64 = 1020;

/// Private ones live in the redistributor.
fn frame(interrupt: u32) -> usize {
    if interrupt < 32 {
        PRIVATE
    } else {
        GIC_DISTRIBUTOR
    }
}

fn word(interrupt: u32) -> usize {
    4 * (interrupt as usize / 32)
}

/// Starts with every interrupt disabled.
pub fn start() {
    write32(CONTROL, AFFINITY_ROUTING_GROUP_1);
    write32(WAKER, read32(WAKER) & !2);
    for _ in 0..1_000_000 {
        if read32(WAKER) & 4 == 0 {
            break;
        }
    }
    // SAFETY: system registers of the interrupt controller; they touch no memory.
    unsafe {
        asm!(
            "msr S3_0_C12_C12_5, {sre}", // ICC_SRE_EL1: system registers on
            "isb",
            "msr S3_0_C4_C6_0, {all}",   // ICC_PMR_EL1: every priority
            "msr S3_0_C12_C12_7, {one}", // ICC_IGRPEN1_EL1
            "isb",
            sre = in(reg) 7u64,
            all = in(reg) 0xffu64,
            one = in(reg) 1u64,
        );
    }
}

pub fn enable(interrupt: u32) {
    let base = frame(interrupt) + word(interrupt);
    write32(base + GROUP, read32(base + GROUP) | 1 << (interrupt % 32));
    write32(base + SET_ENABLE, 1 << (interrupt % 32));
}

/// Masks an interrupt; a level stays pending.
pub fn disable(interrupt: u32) {
    write32(
        frame(interrupt) + word(interrupt) + CLEAR_ENABLE,
        1 << (interrupt % 32),
    );
}

pub fn acknowledge() -> Option<u32> {
    let id: u64;
    // SAFETY: ICC_IAR1_EL1; touches no memory.
    unsafe { asm!("mrs {}, S3_0_C12_C12_0", out(reg) id) };
    if id < SPURIOUS { Some(id as u32) } else { None }
}

pub fn end(interrupt: u32) {
    // SAFETY: ICC_EOIR1_EL1; touches no memory.
    unsafe { asm!("msr S3_0_C12_C12_1, {}", in(reg) u64::from(interrupt)) };
}
