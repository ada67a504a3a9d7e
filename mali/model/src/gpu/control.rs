// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands to the GPU: reset, flushes, counters.

use gpureplay_memory::Bus;
use mali_facts::registers::{GpuCommand, GpuInterrupt, gpu};

use super::Gpu;
use crate::address_space::AddressSpaceRegisters;
use crate::interrupt::Interrupts;
use crate::log::log;
use crate::power::Power;
use crate::space::JobMemory;

impl<B: Bus> Gpu<B> {
    pub(super) fn command(&mut self, value: u32) {
        match GpuCommand::from_bits(value) {
            Some(GpuCommand::Nop | GpuCommand::CounterClear) => {}
            Some(GpuCommand::SoftReset | GpuCommand::HardReset) => self.reset(),
            Some(GpuCommand::CounterSample) => self.sample_counters(),
            Some(GpuCommand::CycleCountStart) => self.cycle_counter = true,
            Some(GpuCommand::CycleCountStop) => self.cycle_counter = false,
            Some(GpuCommand::CleanCaches | GpuCommand::CleanInvalidateCaches) => {
                self.flushed();
                self.interrupts
                    .raise(GpuInterrupt::CLEAN_CACHES_COMPLETED.bits());
            }
            Some(GpuCommand::SetProtectedMode) => {
                log!(self.options.log, Warning, "protected mode is not modelled");
            }
            None => log!(
                self.options.log,
                Warning,
                "GPU_CMD {value:#x} does not exist"
            ),
        }
    }

    pub(super) fn flushed(&mut self) {
        self.flush_id = self.flush_id.wrapping_add(1);
    }

    /// All counters are zero.
    pub(super) fn sample_counters(&mut self) {
        let space = self.word(gpu::PRFCNT_CONFIG) >> 4 & 0xf;
        let base = u64::from(self.word(gpu::PRFCNT_BASE_LO))
            | u64::from(self.word(gpu::PRFCNT_BASE_HI)) << 32;
        let cores = self.profile.core_id_range() as usize;
        // Blocks of 64 words: job manager, tiler, each level-2 slice and core.
        let slices = (self.profile.mem_features >> 8 & 0xf) as usize + 1;
        let enables = [
            gpu::PRFCNT_JM_EN,
            gpu::PRFCNT_TILER_EN,
            gpu::PRFCNT_MMU_L2_EN,
            gpu::PRFCNT_SHADER_EN,
        ]
        .map(|register| self.word(register));
        let mut blocks = vec![enables[0], enables[1]];
        blocks.extend(std::iter::repeat_n(enables[2], slices));
        blocks.extend(std::iter::repeat_n(enables[3], cores));
        let mut dump = vec![0; blocks.len() * 256];
        let timestamp = self.clock.timestamp().to_le_bytes();
        for (block, enable) in dump.chunks_exact_mut(256).zip(blocks) {
            block[..8].copy_from_slice(&timestamp);
            block[8..12].copy_from_slice(&enable.to_le_bytes());
        }
        let Some(registers) = self.spaces.get(space as usize) else {
            log!(
                self.options.log,
                Warning,
                "counters go to address space {space}, which does not exist"
            );
            return;
        };
        let memory = JobMemory {
            bus: &*self.bus,
            space: registers.space(),
            stall: None,
            observer: None,
        };
        match memory.write(base, &dump) {
            Ok(()) => self
                .interrupts
                .raise(GpuInterrupt::PRFCNT_SAMPLE_COMPLETED.bits()),
            Err(fault) => self.report_fault(space, &fault),
        }
    }

    /// Soft and hard are the same: only chains to wait for.
    pub(super) fn reset(&mut self) {
        log!(self.options.log, Info, "reset");
        for slot in &mut self.slots {
            slot.reset();
        }
        for space in &mut self.spaces {
            space.space().wake();
            *space = AddressSpaceRegisters::new();
        }
        self.words.fill(0);
        for register in mali_facts::registers::all() {
            let offset = register.offset();
            self.set_word(offset, register.register.reset);
        }
        self.set_identity();
        self.interrupts = Interrupts::default();
        self.job_interrupts = Interrupts::default();
        self.mmu_interrupts = Interrupts::default();
        self.power = Power::new(self.profile);
        self.job_state = 0;
        self.cycle_counter = false;
        self.epoch += 1;
        self.reset_pending = true;
        self.complete_reset();
    }

    pub(super) fn complete_reset(&mut self) {
        if self.reset_pending && self.outstanding == 0 {
            self.reset_pending = false;
            self.interrupts.raise(GpuInterrupt::RESET_COMPLETED.bits());
        }
    }

    pub(super) fn set_identity(&mut self) {
        for (offset, value) in self.profile.identity() {
            self.set_word(offset, value);
        }
    }
}
