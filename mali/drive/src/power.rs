// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power and interrupt masks, before the first chain.

use mali_facts::registers::GpuInterrupt;
use mali_facts::registers::gpu::{
    GPU_INT_CLEAR, GPU_INT_MASK, L2_PRESENT_LO, L2_PWRON_LO, L2_READY_LO, MMU_FEATURES,
    SHADER_PRESENT_LO, SHADER_PWRON_LO, SHADER_READY_LO,
};
use mali_facts::registers::job::{JOB_INT_CLEAR, JOB_INT_MASK};
use mali_facts::registers::mmu::{MMU_INT_CLEAR, MMU_INT_MASK};

use super::State;
use gpureplay_core::ErrorKind;
use gpureplay_core::family::{Driver, Failed};
use gpureplay_core::gpu::{Gpu, poll};

/// As drivers have it.
const POWER_TIMEOUT_US: u32 = 20_000;

pub(super) const FAULTS: u32 = GpuInterrupt::FAULT.bits() | GpuInterrupt::MULTIPLE_FAULT.bits();

/// Registers of present units, in power-up order; a reset switches all off.
static DOMAINS: [u16; 2] = [L2_PRESENT_LO as u16, SHADER_PRESENT_LO as u16];
const PRESENT_TO_ON: u32 = L2_PWRON_LO - L2_PRESENT_LO;
const PRESENT_TO_READY: u32 = L2_READY_LO - L2_PRESENT_LO;
const _: () = assert!(SHADER_PWRON_LO - SHADER_PRESENT_LO == PRESENT_TO_ON);
const _: () = assert!(SHADER_READY_LO - SHADER_PRESENT_LO == PRESENT_TO_READY);

static CLEAR_REGISTERS: [u16; 3] = [
    GPU_INT_CLEAR as u16,
    JOB_INT_CLEAR as u16,
    MMU_INT_CLEAR as u16,
];
const CLEAR_TO_MASK: u32 = GPU_INT_MASK - GPU_INT_CLEAR;
const _: () = assert!(JOB_INT_MASK - JOB_INT_CLEAR == CLEAR_TO_MASK);
const _: () = assert!(MMU_INT_MASK - MMU_INT_CLEAR == CLEAR_TO_MASK);

/// 0: the GPU does not say.
pub fn address_bits(read: impl FnOnce(u32) -> u32) -> u32 {
    read(MMU_FEATURES) & 0xff
}

pub(super) fn fits<G: Gpu>(at: &mut Driver<G, State>, last: u64) -> Result<(), Failed> {
    let bits = address_bits(|register| at.gpu.read32(register));
    // No width means the full one.
    if bits != 0 && last.checked_shr(bits).unwrap_or(0) != 0 {
        return at.fail(ErrorKind::AddressRange(bits));
    }
    Ok(())
}

pub(super) fn up<G: Gpu>(at: &mut Driver<G, State>, unused_cores: u32) -> Result<(), Failed> {
    for &present in &DOMAINS {
        let present = u32::from(present);
        let ready = present + PRESENT_TO_READY;
        let all = at.gpu.read32(present);
        at.state.affinity = all;
        at.gpu.write32(present + PRESENT_TO_ON, all);
        if let Err(found) = poll(&mut at.gpu, ready, all, all, POWER_TIMEOUT_US) {
            return at.fail(ErrorKind::NoPower {
                register: ready,
                expected: all,
                found,
            });
        }
    }
    // The last domain, shader cores, gave the affinity.
    at.state.affinity &= !unused_cores;
    for &clear in &CLEAR_REGISTERS {
        let clear = u32::from(clear);
        let interrupts = if clear == GPU_INT_CLEAR {
            FAULTS
        } else {
            u32::MAX
        };
        at.gpu.write32(clear, u32::MAX);
        at.gpu.write32(clear + CLEAR_TO_MASK, interrupts);
    }
    Ok(())
}
