// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading and writing registers.

use gpureplay_memory::Bus;
use mali_facts::registers::{
    Access, AddressSpaceCommand, Block, GpuInterrupt, JobCommand, Located, address_space, gpu, job,
    job_slot, lookup, mmu,
};

use super::Gpu;
use crate::log::log;
use crate::power::{self, Function};
use crate::slot::Stop;

impl<B: Bus> Gpu<B> {
    /// Missing and write-only registers are 0.
    pub fn read32(&mut self, offset: u32) -> u32 {
        let Some(located) = lookup(offset) else {
            log!(
                self.options.log,
                Debug,
                "read of {offset:#06x}, where no register is known"
            );
            return 0;
        };
        if located.register.access == Access::Write {
            return 0;
        }
        match located.block {
            Block::Gpu => self.read_gpu(offset),
            Block::Job => match offset {
                job::JOB_INT_RAWSTAT => self.job_interrupts.raw,
                job::JOB_INT_MASK => self.job_interrupts.mask,
                job::JOB_INT_STAT => self.job_interrupts.status(),
                job::JOB_INT_JS_STATE => self.job_state,
                _ => self.word(offset),
            },
            Block::Mmu => match offset {
                mmu::MMU_INT_RAWSTAT => self.mmu_interrupts.raw,
                mmu::MMU_INT_MASK => self.mmu_interrupts.mask,
                mmu::MMU_INT_STAT => self.mmu_interrupts.status(),
                _ => 0,
            },
            Block::JobSlot => self
                .slots
                .get(located.index as usize)
                .map_or(0, |slot| slot.word(located.register.offset)),
            Block::AddressSpace => self
                .spaces
                .get(located.index as usize)
                .map_or(0, |space| space.word(located.register.offset)),
        }
    }

    fn read_gpu(&self, offset: u32) -> u32 {
        let cycles = || {
            if self.cycle_counter {
                self.clock.cycles()
            } else {
                0
            }
        };
        match offset {
            gpu::GPU_INT_RAWSTAT => self.interrupts.raw,
            gpu::GPU_INT_MASK => self.interrupts.mask,
            gpu::GPU_INT_STAT => self.interrupts.status(),
            gpu::GPU_STATUS => u32::from(self.cycle_counter) << 6,
            gpu::LATEST_FLUSH_ID => self.flush_id,
            gpu::CYCLE_COUNT_LO => cycles() as u32,
            gpu::CYCLE_COUNT_HI => (cycles() >> 32) as u32,
            gpu::TIMESTAMP_LO => self.clock.timestamp() as u32,
            gpu::TIMESTAMP_HI => (self.clock.timestamp() >> 32) as u32,
            _ => match power::decode(offset) {
                Some((domain, function, high)) => {
                    let units = match function {
                        Function::Ready => self.power.ready(domain),
                        Function::Active if self.is_busy() => self.power.ready(domain),
                        _ => 0,
                    };
                    (units >> if high { 32 } else { 0 }) as u32
                }
                None => self.word(offset),
            },
        }
    }

    /// Missing and read-only registers ignore it.
    pub fn write32(&mut self, offset: u32, value: u32) {
        let Some(located) = lookup(offset) else {
            log!(
                self.options.log,
                Debug,
                "write of {value:#x} to {offset:#06x}, where no register is known"
            );
            return;
        };
        if located.register.access == Access::Read {
            log!(
                self.options.log,
                Debug,
                "write of {value:#x} to {located}, which can only be read"
            );
            return;
        }
        match located.block {
            Block::Gpu => self.write_gpu(offset, value),
            Block::Job => match offset {
                job::JOB_INT_CLEAR => self.clear_job_interrupts(value),
                job::JOB_INT_MASK => self.job_interrupts.mask = value,
                _ => self.set_word(offset, value),
            },
            Block::Mmu => match offset {
                mmu::MMU_INT_CLEAR => self.mmu_interrupts.clear(value),
                _ => self.mmu_interrupts.mask = value,
            },
            Block::JobSlot => self.write_slot(&located, value),
            Block::AddressSpace => self.write_space(&located, value),
        }
    }

    fn write_gpu(&mut self, offset: u32, value: u32) {
        match offset {
            gpu::GPU_INT_CLEAR => self.interrupts.clear(value),
            gpu::GPU_INT_MASK => self.interrupts.mask = value,
            gpu::GPU_CMD => self.command(value),
            _ => match power::decode(offset) {
                Some((domain, function, high)) => {
                    let units = u64::from(value) << if high { 32 } else { 0 };
                    if self.power.switch(domain, units, function == Function::On) {
                        let changed =
                            GpuInterrupt::POWER_CHANGED_SINGLE | GpuInterrupt::POWER_CHANGED_ALL;
                        self.interrupts.raise(changed.bits());
                    }
                }
                None => self.set_word(offset, value),
            },
        }
    }

    fn write_slot(&mut self, located: &Located, value: u32) {
        let index = located.index as usize;
        let Some(slot) = self.slots.get_mut(index) else {
            log!(
                self.options.log,
                Warning,
                "write of {value:#x} to {located}, but there is no such slot"
            );
            return;
        };
        let unknown = |what: &str| {
            log!(
                self.options.log,
                Warning,
                "{located}: command {value:#x} {what}"
            );
        };
        match (located.register.offset, JobCommand::from_bits(value)) {
            (job_slot::COMMAND_NEXT, Some(JobCommand::Start)) => slot.queue(),
            (job_slot::COMMAND_NEXT, Some(JobCommand::Nop)) => slot.unqueue(),
            (job_slot::COMMAND_NEXT, _) => unknown("cannot be queued"),
            (job_slot::COMMAND, Some(command)) => {
                slot.set_word(job_slot::COMMAND, value);
                let stopped = match command {
                    JobCommand::Nop | JobCommand::Start => None,
                    JobCommand::SoftStop => slot.stop(Stop::Soft, None),
                    JobCommand::HardStop => slot.stop(Stop::Hard, None),
                    JobCommand::SoftStop0 => slot.stop(Stop::Soft, Some(false)),
                    JobCommand::HardStop0 => slot.stop(Stop::Hard, Some(false)),
                    JobCommand::SoftStop1 => slot.stop(Stop::Soft, Some(true)),
                    JobCommand::HardStop1 => slot.stop(Stop::Hard, Some(true)),
                };
                for space in &self.spaces {
                    space.space().wake();
                }
                if let Some(outcome) = stopped {
                    self.retire(located.index, &outcome);
                }
            }
            (job_slot::COMMAND, None) => unknown("does not exist"),
            (register, _) => slot.set_word(register, value),
        }
        self.update_slot(located.index);
    }

    fn clear_job_interrupts(&mut self, bits: u32) {
        self.job_interrupts.clear(bits);
        for index in 0..self.slots.len() as u32 {
            if bits & (job::done(index) | job::failed(index)) != 0 {
                self.update_slot(index);
                self.latch_state(index);
            }
        }
    }

    fn write_space(&mut self, located: &Located, value: u32) {
        let Some(space) = self.spaces.get_mut(located.index as usize) else {
            log!(
                self.options.log,
                Warning,
                "write of {value:#x} to {located}, but there is no such address space"
            );
            return;
        };
        if located.register.offset != address_space::COMMAND {
            space.set_word(located.register.offset, value);
            return;
        }
        match AddressSpaceCommand::from_bits(value) {
            Some(command) => space.command(command, self.profile),
            None => log!(
                self.options.log,
                Warning,
                "{located}: command {value:#x} does not exist"
            ),
        }
    }
}
