// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers and reset.

use gpureplay_memory::Bus;
use mali_facts::firmware::registers::{
    CSF_ID, Command, GPU_COMMAND, JOB_INT_CLEAR, JOB_INT_MASK, JOB_INT_RAWSTAT, JOB_INT_STAT,
    LATEST_FLUSH, MCU_CONTROL, MCU_STATUS, Processor, doorbell,
};
use mali_facts::registers::{AddressSpaceCommand, GpuInterrupt, address_space, gpu, mmu};

use super::StreamDevice;
use super::group::Group;
use crate::address_space::AddressSpaceRegisters;
use crate::interrupt::Interrupts;
use crate::log::log;
use crate::power::{self, Function, Power};

/// Bytes of registers that keep what is written.
const CONTROL: u32 = 0x1000;
const CYCLES: u32 = 0x90;
const TIME: u32 = 0x98;

fn of_space(offset: u32) -> Option<(usize, u32)> {
    let within = offset.checked_sub(address_space::offset(0, 0))?;
    let index = within / address_space::STRIDE;
    (index < 16).then_some((index as usize, within % address_space::STRIDE))
}

impl<B: Bus> StreamDevice<B> {
    /// Reads a register; unknown ones are 0.
    pub fn read32(&mut self, offset: u32) -> u32 {
        if let Some((space, register)) = of_space(offset) {
            let space = self.spaces.get(space);
            return space.map_or(0, |space| space.word(register));
        }
        let half = |value: u64| (value >> if offset & 4 != 0 { 32 } else { 0 }) as u32;
        match offset {
            gpu::GPU_INT_RAWSTAT => self.interrupts.raw,
            gpu::GPU_INT_MASK => self.interrupts.mask,
            gpu::GPU_INT_STAT => self.interrupts.status(),
            JOB_INT_RAWSTAT => self.job_interrupts.raw,
            JOB_INT_MASK => self.job_interrupts.mask,
            JOB_INT_STAT => self.job_interrupts.status(),
            mmu::MMU_INT_RAWSTAT => self.mmu_interrupts.raw,
            mmu::MMU_INT_MASK => self.mmu_interrupts.mask,
            mmu::MMU_INT_STAT => self.mmu_interrupts.status(),
            MCU_STATUS => self.processor as u32,
            LATEST_FLUSH => self.flush_id,
            _ if offset & !4 == CYCLES => half(self.clock.cycles()),
            _ if offset & !4 == TIME => half(self.clock.timestamp()),
            _ => match power::decode(offset) {
                Some((domain, Function::Ready, _)) => half(self.power.ready(domain)),
                Some(_) => 0,
                None => self.words.get(offset as usize / 4).copied().unwrap_or(0),
            },
        }
    }

    /// Writes a register, unless it is read-only.
    pub fn write32(&mut self, offset: u32, value: u32) {
        if let Some((space, register)) = of_space(offset) {
            self.write_space(space, register, value);
            return;
        }
        match offset {
            gpu::GPU_INT_CLEAR => self.interrupts.clear(value),
            gpu::GPU_INT_MASK => self.interrupts.mask = value,
            JOB_INT_CLEAR => self.job_interrupts.clear(value),
            JOB_INT_MASK => self.job_interrupts.mask = value,
            mmu::MMU_INT_CLEAR => self.mmu_interrupts.clear(value),
            mmu::MMU_INT_MASK => self.mmu_interrupts.mask = value,
            GPU_COMMAND => self.command(value),
            MCU_CONTROL => self.control_processor(value),
            _ => match (doorbell(offset), power::decode(offset)) {
                (Some(_), _) if self.processor != Processor::Enabled => {
                    log!(self.options.log, Warning, "a doorbell without firmware");
                }
                (Some(0), _) => self.attempt(Self::global_doorbell),
                (Some(number), _) => self.attempt(|device| device.doorbell(number)),
                (None, Some((domain, function, high))) => {
                    let units = u64::from(value) << if high { 32 } else { 0 };
                    let on = function == Function::On;
                    let switches = on || function == Function::Off;
                    if switches && self.power.switch(domain, units, on) {
                        let changed =
                            GpuInterrupt::POWER_CHANGED_SINGLE | GpuInterrupt::POWER_CHANGED_ALL;
                        self.interrupts.raise(changed.bits());
                    }
                }
                (None, None) => self.keep(offset, value),
            },
        }
    }

    fn keep(&mut self, offset: u32, value: u32) {
        let mut fixed = self.gpu.profile.identity();
        if offset == CSF_ID || fixed.any(|(register, _)| register == offset) {
            return;
        }
        drop(fixed);
        self.set_word(offset, value);
    }

    fn set_word(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut(offset as usize / 4) {
            *word = value;
        }
    }

    fn write_space(&mut self, index: usize, register: u32, value: u32) {
        let Some(space) = self.spaces.get_mut(index) else {
            return;
        };
        if register != address_space::COMMAND {
            space.set_word(register, value);
            return;
        }
        match AddressSpaceCommand::from_bits(value) {
            Some(command) => space.command(command, &self.gpu.profile),
            None => log!(
                self.options.log,
                Warning,
                "address space {index}: command {value:#x} does not exist"
            ),
        }
    }

    fn command(&mut self, value: u32) {
        match Command::from_bits(value) {
            Some(Command::Nop) => {}
            Some(Command::Reset) => self.reset(),
            Some(Command::FlushCaches) => {
                self.flush_id = self.flush_id.wrapping_add(1);
                let done = GpuInterrupt::CLEAN_CACHES_COMPLETED.bits();
                self.interrupts.raise(done);
            }
            None => log!(
                self.options.log,
                Warning,
                "GPU_COMMAND {value:#x} does not exist"
            ),
        }
    }

    /// 0: off; 1: on; 2: on when hardware chooses.
    fn control_processor(&mut self, value: u32) {
        match value {
            0 => {
                self.abandon_groups();
                self.set_processor(Processor::Disabled);
            }
            1 | 2 if self.processor != Processor::Enabled => self.attempt(Self::boot),
            _ => {}
        }
    }

    /// The interrupt mask stays: the driver waits for the end.
    fn reset(&mut self) {
        log!(self.options.log, Info, "reset");
        let mask = self.interrupts.mask;
        self.clear();
        self.interrupts.mask = mask;
        self.reset_pending = true;
        self.complete_reset();
    }

    pub(super) fn clear(&mut self) {
        self.groups
            .resize(self.gpu.groups as usize, Group::default());
        self.abandon_groups();
        for space in &self.spaces {
            space.space().wake();
        }
        let spaces = self.gpu.profile.as_present.count_ones();
        self.spaces = (0..spaces).map(|_| AddressSpaceRegisters::new()).collect();
        self.words = vec![0; CONTROL as usize / 4];
        for (offset, value) in self.gpu.profile.identity() {
            self.set_word(offset, value);
        }
        self.set_word(CSF_ID, self.gpu.csf_id);
        self.interrupts = Interrupts::default();
        self.job_interrupts = Interrupts::default();
        self.mmu_interrupts = Interrupts::default();
        self.power = Power::new(&self.gpu.profile);
        self.processor = Processor::Disabled;
    }

    pub(super) fn complete_reset(&mut self) {
        if self.reset_pending && self.outstanding == 0 {
            self.reset_pending = false;
            let done = GpuInterrupt::RESET_COMPLETED.bits();
            self.interrupts.raise(done);
        }
    }
}
