// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a device fail at a chosen moment.

use gpureplay_format::Access;
use mali_regs::job::JOB_INT_RAWSTAT;

use crate::gpu::{DeviceError, Gpu, Lines};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A register reads as all ones, as from a bus without a device.
    ReadOnes,
    /// A register reads as zero.
    ReadZero,
    /// A register write does not arrive.
    LostWrite,
    /// An interrupt line stays silent until the time is over.
    LostInterrupt,
    /// A line is raised although nothing happened.
    SpuriousInterrupt,
    /// The job manager reports a failed chain.
    FailedJob,
    /// Memory cannot be accessed or mapped.
    Memory,
    /// The GPU loses power: all registers read as zero and nothing arrives, until it is reset.
    PowerLoss,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::ReadOnes,
        Self::ReadZero,
        Self::LostWrite,
        Self::LostInterrupt,
        Self::SpuriousInterrupt,
        Self::FailedJob,
        Self::Memory,
        Self::PowerLoss,
    ];
}

/// A device whose call number `at` goes wrong, once.
#[derive(Debug)]
pub struct Faulty<G> {
    gpu: G,
    kind: FaultKind,
    at: u64,
    calls: u64,
    fired: bool,
    dark: bool,
}

impl<G: Gpu> Faulty<G> {
    /// Disturbs the first call from number `at` on that this kind of fault can disturb.
    pub const fn new(gpu: G, kind: FaultKind, at: u64) -> Self {
        Self {
            gpu,
            kind,
            at,
            calls: 0,
            fired: false,
            dark: false,
        }
    }

    /// Disturbs a call below number `below` in a way that follows from `seed`.
    pub const fn seeded(gpu: G, seed: u64, below: u64) -> Self {
        // One step of a multiplicative generator spreads neighbouring seeds.
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let kind = FaultKind::ALL[(mixed >> 32) as usize % FaultKind::ALL.len()];
        let below = if below == 0 { 1 } else { below };
        Self::new(gpu, kind, (mixed >> 40) % below)
    }

    /// Calls so far.
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether the fault has happened.
    pub const fn fired(&self) -> bool {
        self.fired
    }

    /// The device.
    pub const fn inner(&mut self) -> &mut G {
        &mut self.gpu
    }

    /// Counts a call; true when it is the one that goes wrong.
    fn fires(&mut self, kinds: &[FaultKind]) -> bool {
        let now = !self.fired && self.calls >= self.at && kinds.contains(&self.kind);
        self.calls += 1;
        self.fired |= now;
        now
    }

    fn memory_fails(&mut self, va: u64) -> Result<(), DeviceError> {
        if self.fires(&[FaultKind::Memory]) {
            Err(DeviceError::NotMapped(va))
        } else {
            Ok(())
        }
    }
}

impl<G: Gpu> Gpu for Faulty<G> {
    fn read32(&mut self, register: u32) -> u32 {
        if self.fires(&[
            FaultKind::ReadOnes,
            FaultKind::ReadZero,
            FaultKind::PowerLoss,
        ]) {
            self.dark |= self.kind == FaultKind::PowerLoss;
            return if self.kind == FaultKind::ReadOnes {
                u32::MAX
            } else {
                0
            };
        }
        if self.dark {
            return 0;
        }
        let value = self.gpu.read32(register);
        if register == JOB_INT_RAWSTAT && value != 0 && self.fires(&[FaultKind::FailedJob]) {
            return value << 16;
        }
        value
    }

    fn write32(&mut self, register: u32, value: u32) {
        let lost = self.fires(&[FaultKind::LostWrite, FaultKind::PowerLoss]);
        self.dark |= lost && self.kind == FaultKind::PowerLoss;
        if !lost && !self.dark {
            self.gpu.write32(register, value);
        }
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        if self.fires(&[FaultKind::LostInterrupt, FaultKind::SpuriousInterrupt]) {
            if self.kind == FaultKind::SpuriousInterrupt {
                return lines;
            }
            self.gpu.wait_irq(lines, timeout_us);
            return Lines::NONE;
        }
        let raised = self.gpu.wait_irq(lines, timeout_us);
        if self.dark { Lines::NONE } else { raised }
    }

    fn now_us(&mut self) -> u64 {
        self.gpu.now_us()
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        if self.fires(&[FaultKind::Memory]) {
            return Err(DeviceError::OutOfMemory);
        }
        self.gpu.map(va, pages, access)
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        if self.fires(&[FaultKind::Memory]) {
            return Err(DeviceError::AddressSpaceStuck);
        }
        self.gpu.activate()
    }

    fn release(&mut self) {
        self.gpu.release();
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.memory_fails(va)?;
        self.gpu.write_memory(va, bytes)
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.memory_fails(va)?;
        self.gpu.read_memory(va, bytes)
    }

    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        self.memory_fails(va)?;
        self.gpu.fill_memory(va, length, byte)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.dark = false;
        self.gpu.reset()
    }
}
