// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's `virt` machine (`hw/arm/virt.c`).

/// PL011.
pub const UART: usize = 0x0900_0000;
pub const GIC_DISTRIBUTOR: usize = 0x0800_0000;
/// Of the boot processor.
pub const GIC_REDISTRIBUTOR: usize = 0x080a_0000;
/// ECAM.
pub const PCI_CONFIG: usize = 0x40_1000_0000;
/// For BARs.
pub const PCI_WINDOW: usize = 0x1000_0000;
/// INTA, the first of four.
pub const PCI_FIRST_INTERRUPT: u32 = 32 + 3;
/// Virtual timer.
pub const TIMER_INTERRUPT: u32 = 27;
pub const RAM: usize = 0x4000_0000;
/// Needed RAM (`-m 512` or more).
pub const RAM_SIZE: usize = 512 << 20;
/// Loaded by the machine.
pub const LOADED_RECORDING: usize = RAM + (256 << 20);

/// NOR flash's second bank.
#[cfg(feature = "signature")]
pub const FLASH: usize = 0x0400_0000;
/// Bytes per erase block.
#[cfg(feature = "signature")]
pub const FLASH_BLOCK: usize = 256 << 10;

pub fn read32(address: usize) -> u32 {
    // SAFETY: callers pass device addresses of this machine, which the identity map covers as device memory; the
    // load has no effect on Rust memory.
    unsafe { core::ptr::read_volatile(address as *const u32) }
}

pub fn write32(address: usize, value: u32) {
    // SAFETY: as for `read32`; no Rust object lies in device memory.
    unsafe { core::ptr::write_volatile(address as *mut u32, value) }
}
