// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power, interrupt masks and the address space: what precedes the first action that needs them.

use mali_regs::GpuInterrupt;
use mali_regs::gpu::{
    GPU_INT_CLEAR, GPU_INT_MASK, L2_PRESENT_LO, L2_PWRON_LO, L2_READY_LO, MMU_FEATURES,
    SHADER_PRESENT_LO, SHADER_PWRON_LO, SHADER_READY_LO,
};
use mali_regs::job::{JOB_INT_CLEAR, JOB_INT_MASK};
use mali_regs::mmu::{MMU_INT_CLEAR, MMU_INT_MASK};

use super::{Failed, Session};
use crate::error::ErrorKind;
use crate::gpu::{Gpu, poll};

/// Bound of a power transition, as drivers have it.
const POWER_TIMEOUT_US: u32 = 20_000;

/// Interrupts of the GPU line that end a replay: faults.
const GPU_INTERRUPTS: u32 = GpuInterrupt::FAULT.bits() | GpuInterrupt::MULTIPLE_FAULT.bits();

/// Power domains in the order of their power-up, by the register that says what is present. A reset switches all of them off.
static DOMAINS: [u16; 2] = [L2_PRESENT_LO as u16, SHADER_PRESENT_LO as u16];
/// From a domain's register of what is present to those that switch on and that say what is ready.
const ON: u32 = L2_PWRON_LO - L2_PRESENT_LO;
const READY: u32 = L2_READY_LO - L2_PRESENT_LO;
const _: () = assert!(SHADER_PWRON_LO - SHADER_PRESENT_LO == ON);
const _: () = assert!(SHADER_READY_LO - SHADER_PRESENT_LO == READY);

/// Interrupt lines, by the register that clears.
static LINES: [u16; 3] = [
    GPU_INT_CLEAR as u16,
    JOB_INT_CLEAR as u16,
    MMU_INT_CLEAR as u16,
];
/// From a line's register that clears to the one that masks.
const MASK: u32 = GPU_INT_MASK - GPU_INT_CLEAR;
const _: () = assert!(JOB_INT_MASK - JOB_INT_CLEAR == MASK);
const _: () = assert!(MMU_INT_MASK - MMU_INT_CLEAR == MASK);

impl<G: Gpu> Session<'_, '_, G> {
    /// Refuses a recording with regions that the GPU cannot address.
    pub(super) fn check_address_range(&mut self) -> Result<(), Failed> {
        let bits = self.gpu.read32(MMU_FEATURES) & 0xff;
        let regions = self.recording.recording().regions();
        let last = regions
            .last()
            .map_or(0, |region| region.end().wrapping_sub(1));
        // A GPU that reports no width has the full one.
        if bits != 0 && last.checked_shr(bits).unwrap_or(0) != 0 {
            return self.fail(ErrorKind::AddressRange(bits));
        }
        Ok(())
    }

    /// Switches level-2 cache and shader cores on, unmasks interrupts and gives the address space its tables.
    pub(super) fn power_up(&mut self) -> Result<(), Failed> {
        if self.powered {
            return Ok(());
        }
        for &present in &DOMAINS {
            let present = u32::from(present);
            let ready = present + READY;
            let all = self.gpu.read32(present);
            self.affinity = all;
            self.gpu.write32(present + ON, all);
            if let Err(found) = poll(&mut self.gpu, ready, all, all, POWER_TIMEOUT_US) {
                return self.fail(ErrorKind::NoPower {
                    register: ready,
                    expected: all,
                    found,
                });
            }
        }
        // The last domain's units are the shader cores.
        self.affinity &= !self.recording.recording().header().unused_cores.get();
        for &clear in &LINES {
            let clear = u32::from(clear);
            let interrupts = if clear == GPU_INT_CLEAR {
                GPU_INTERRUPTS
            } else {
                u32::MAX
            };
            self.gpu.write32(clear, u32::MAX);
            self.gpu.write32(clear + MASK, interrupts);
        }
        match self.gpu.activate() {
            Ok(space) => self.address_space = space,
            Err(error) => return self.fail(ErrorKind::Device(error)),
        }
        self.powered = true;
        Ok(())
    }
}
