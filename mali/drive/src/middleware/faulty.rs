// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a device fail at a chosen moment.

use gpureplay_format::Access;
use mali_facts::registers::gpu::{GPU_FAULT_STATUS, GPU_INT_RAWSTAT};
use mali_facts::registers::job::JOB_INT_RAWSTAT;
use mali_facts::registers::mmu::MMU_INT_RAWSTAT;

use gpureplay_core::gpu::{Gpu, Lines, Submission, Wrapper};
use gpureplay_core::{DeviceError, ErrorKind};

gpureplay_format::named! {
    /// What goes wrong.
    FaultKind;

    /// A register reads as all ones, as from a bus without a device.
    ReadOnes = "read-ones";
    /// A register reads as zero.
    ReadZero = "read-zero";
    /// A register write does not arrive.
    LostWrite = "lost-write";
    /// All interrupt lines stay silent until the GPU is reset.
    LostInterrupt = "lost-interrupt";
    /// One wait for an interrupt ends without it; the next one sees it.
    LateInterrupt = "late-interrupt";
    /// A line is raised although nothing happened.
    SpuriousInterrupt = "spurious-interrupt";
    /// All lines are raised from now on until the GPU is reset.
    StuckInterrupt = "stuck-interrupt";
    /// The job manager reports a failed chain.
    FailedJob = "job-fault";
    /// A job faults in the MMU.
    MmuFault = "mmu-fault";
    /// The GPU reports a bus fault, and its job never ends.
    BusFault = "bus-fault";
    /// Memory cannot be accessed or mapped.
    Memory = "memory";
    /// A register reads as zero until the GPU is reset: what polls it never ends.
    EndlessPoll = "endless-poll";
    /// A job fails, and the reset that follows does not end.
    NoReset = "no-reset";
    /// The GPU loses power: all registers read as zero and nothing arrives, until it is reset.
    PowerLoss = "power-loss";
}

/// Call number `at` goes wrong, once.
#[derive(Debug)]
pub struct Faulty<G> {
    gpu: G,
    kind: FaultKind,
    at: u64,
    calls: u64,
    fired: bool,
    fired_us: u64,
    /// Until the next reset.
    lasting: bool,
    register: u32,
}

impl<G: Gpu> Faulty<G> {
    /// Disturbs the first suitable call from `at`.
    pub const fn new(gpu: G, kind: FaultKind, at: u64) -> Self {
        Self {
            gpu,
            kind,
            at,
            calls: 0,
            fired: false,
            fired_us: 0,
            lasting: false,
            register: 0,
        }
    }

    /// Disturbs a call below `below`.
    pub const fn seeded(gpu: G, seed: u64, below: u64) -> Self {
        // Spreads neighbouring seeds.
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

    /// Time of the fault by the device's clock.
    pub const fn fired_us(&self) -> u64 {
        self.fired_us
    }

    /// Fault, and first call.
    pub const fn plan(&self) -> (FaultKind, u64) {
        (self.kind, self.at)
    }

    /// Wrapped device.
    pub const fn get_ref(&self) -> &G {
        &self.gpu
    }

    /// Calls to it are not counted or disturbed.
    pub const fn get_mut(&mut self) -> &mut G {
        &mut self.gpu
    }

    /// Gives the device back.
    pub fn into_inner(self) -> G {
        self.gpu
    }

    fn fires(&mut self, kinds: &[FaultKind]) -> bool {
        let now = !self.fired && self.calls >= self.at && kinds.contains(&self.kind);
        self.calls += 1;
        self.fired |= now;
        self.lasting |= now;
        if now {
            self.fired_us = self.gpu.now_us();
        }
        now
    }

    fn lasts(&self, kind: FaultKind) -> bool {
        self.lasting && self.kind == kind
    }

    fn memory_fails(&mut self, va: u64) -> Result<(), DeviceError> {
        if self.fires(&[FaultKind::Memory]) {
            Err(DeviceError::NotMapped(va))
        } else {
            Ok(())
        }
    }
}

/// In GPU_FAULT_STATUS.
const EXTERNAL_FAULT: u32 = 0x80;
const READ_FAULTS: [FaultKind; 4] = [
    FaultKind::ReadOnes,
    FaultKind::ReadZero,
    FaultKind::EndlessPoll,
    FaultKind::PowerLoss,
];
const JOB_FAULTS: [FaultKind; 4] = [
    FaultKind::FailedJob,
    FaultKind::MmuFault,
    FaultKind::BusFault,
    FaultKind::NoReset,
];

impl<G: Gpu> Wrapper for Faulty<G> {
    type Inner = G;

    fn inner(&mut self) -> &mut G {
        &mut self.gpu
    }

    fn read32(&mut self, register: u32) -> u32 {
        if self.fires(&READ_FAULTS) {
            self.register = register;
            return if self.kind == FaultKind::ReadOnes {
                u32::MAX
            } else {
                0
            };
        }
        let gone = self.lasts(FaultKind::EndlessPoll) && self.register == register;
        if gone || self.lasts(FaultKind::PowerLoss) {
            return 0;
        }
        let value = self.gpu.read32(register);
        if register == JOB_INT_RAWSTAT && value != 0 {
            self.fires(&JOB_FAULTS);
        }
        if !self.lasting || !JOB_FAULTS.contains(&self.kind) {
            return value;
        }
        match (self.kind, register) {
            (FaultKind::BusFault, JOB_INT_RAWSTAT) => 0,
            (FaultKind::BusFault, GPU_INT_RAWSTAT) => value | 1,
            (FaultKind::BusFault, GPU_FAULT_STATUS) => EXTERNAL_FAULT,
            (FaultKind::MmuFault, MMU_INT_RAWSTAT) => 1,
            // Completed chains become failed ones, in the upper half; failed ones stay.
            (_, JOB_INT_RAWSTAT) => value << 16 | value & 0xffff_0000,
            _ => value,
        }
    }

    fn write32(&mut self, register: u32, value: u32) {
        let lost = self.fires(&[FaultKind::LostWrite, FaultKind::PowerLoss]);
        if !lost && !self.lasts(FaultKind::PowerLoss) {
            self.gpu.write32(register, value);
        }
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        if self.fires(&[FaultKind::LateInterrupt]) {
            return Lines::NONE;
        }
        if self.fires(&[FaultKind::SpuriousInterrupt]) {
            return lines;
        }
        self.fires(&[FaultKind::LostInterrupt, FaultKind::StuckInterrupt]);
        let stuck = self.lasts(FaultKind::StuckInterrupt);
        // Without power no line rises.
        let silent = self.lasts(FaultKind::PowerLoss);
        let lines_left = if silent { Lines::NONE } else { lines };
        let raised = self
            .gpu
            .wait_irq(lines_left, if stuck { 0 } else { timeout_us });
        if stuck {
            lines
        } else if self.lasts(FaultKind::BusFault) {
            Lines(Lines::GPU.0 & lines.0)
        } else if self.lasts(FaultKind::LostInterrupt) || silent {
            Lines::NONE
        } else {
            raised
        }
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

    // Of a chain that the device runs by itself, only the end can be disturbed.
    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        let ended = self.gpu.run_chain(work)?;
        if ended.is_err() || !self.fires(&JOB_FAULTS) {
            return Some(ended);
        }
        let (status, address) = (EXTERNAL_FAULT, 0);
        Some(Err(match self.kind {
            FaultKind::MmuFault => ErrorKind::MmuFault { status, address },
            FaultKind::BusFault => ErrorKind::GpuFault { status, address },
            _ => ErrorKind::JobFault {
                slot: work.queue(),
                status,
                tail: work.head(),
                fault_address: address,
            },
        }))
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        let refused = self.lasts(FaultKind::NoReset);
        self.lasting = false;
        if refused {
            return Err(DeviceError::ResetFailed);
        }
        self.gpu.reset()
    }
}
