// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model as a device with somebody who looks at it whenever a chain starts or has ended.

use gpureplay_core::{DeviceError, Gpu, Lines};
use gpureplay_format::Access;
use gpureplay_on_model::OnModel;
use mali_regs::job::{JOB_INT_CLEAR, JOB_INT_RAWSTAT};
use mali_regs::job_slot::{COMMAND_NEXT, CONFIG_NEXT, HEAD_NEXT_HI, HEAD_NEXT_LO, offset};
use mali_regs::{JOB_SLOTS, JobCommand};

/// A chain that is about to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// Its number, from 1 on.
    pub(super) number: u32,
    /// Address of its first job.
    pub(super) head: u64,
    /// Address space.
    pub(super) space: u32,
}

/// Who looks.
pub(super) trait Watch {
    /// A chain is about to start; false keeps it from starting, and it fails.
    fn starts(&mut self, device: &mut OnModel, chain: Chain) -> bool;
    /// A chain has ended.
    fn ended(&mut self, _: &mut OnModel, _: Chain) {}
}

/// A device that is watched.
pub(super) struct Watched<W> {
    device: OnModel,
    pub(super) watch: W,
    chain: Chain,
    stopped: bool,
}

impl<W: Watch> Watched<W> {
    pub(super) fn new(device: OnModel, watch: W) -> Self {
        Self {
            device,
            watch,
            chain: Chain::default(),
            stopped: false,
        }
    }
}

impl<W: Watch> Gpu for Watched<W> {
    fn read32(&mut self, register: u32) -> u32 {
        if self.stopped && register == JOB_INT_RAWSTAT {
            return 0xffff_0000;
        }
        self.device.read32(register)
    }
    fn write32(&mut self, register: u32, value: u32) {
        let is = |which| (0..JOB_SLOTS).any(|slot| register == offset(slot, which));
        let wide = u64::from(value);
        if is(HEAD_NEXT_LO) {
            self.chain.head = self.chain.head >> 32 << 32 | wide;
        } else if is(HEAD_NEXT_HI) {
            self.chain.head = self.chain.head & 0xffff_ffff | wide << 32;
        } else if is(CONFIG_NEXT) {
            self.chain.space = value & 0xf;
        } else if is(COMMAND_NEXT) && value == JobCommand::Start as u32 {
            self.chain.number += 1;
            self.stopped = !self.watch.starts(&mut self.device, self.chain);
            if self.stopped {
                return;
            }
        }
        self.device.write32(register, value);
        // The engine acknowledges a chain that has ended.
        if register == JOB_INT_CLEAR && value != u32::MAX {
            self.watch.ended(&mut self.device, self.chain);
        }
    }
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let timeout_us = if self.stopped { 0 } else { timeout_us };
        self.device.wait_irq(lines, timeout_us)
    }
    fn now_us(&mut self) -> u64 {
        self.device.now_us()
    }
    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.device.map(va, pages, access)
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        self.device.activate()
    }
    fn release(&mut self) {
        self.device.release();
    }
    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write_memory(va, bytes)
    }
    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read_memory(va, bytes)
    }
}
