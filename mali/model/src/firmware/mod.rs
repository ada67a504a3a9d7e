// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU with command streams and firmware.
//!
//! No firmware is executed. At each doorbell the model does what drivers expect: acknowledges requests, starts,
//! suspends and resumes groups, reports. Streams run in pieces, away from the registers.

mod boot;
mod group;
mod memory;
mod queue;
mod registers;
mod report;
mod request;
mod saved;
mod work;

use std::sync::Arc;

use gpureplay_memory::Bus;
use gpureplay_shader::{MmuFault, Threads, WorkLimit};
use mali_facts::firmware::registers::{MCU_STATUS_CHANGED, Processor};
use mali_facts::registers::mmu;
use mali_facts::{Profile, StreamGpu};

use self::group::Group;
use self::memory::Memory;
pub use self::work::{StreamFinished, StreamWork};
use crate::address_space::AddressSpaceRegisters;
use crate::clock::Clock;
use crate::gpu::Options;
use crate::interrupt::{Interrupts, IrqLines};
use crate::log::log;
use crate::power::Power;
use crate::space::is_bus_fault;

/// Mali GPU with command streams.
///
/// Register accesses never wait for streams, which wait for [`run`](StreamDevice::run) or a thread with
/// [`take_work`](StreamDevice::take_work).
pub struct StreamDevice<B: Bus> {
    gpu: &'static StreamGpu,
    bus: Arc<B>,
    options: Options,
    threads: Arc<Threads>,
    work: Arc<WorkLimit>,
    clock: Clock,
    words: Vec<u32>,
    interrupts: Interrupts,
    job_interrupts: Interrupts,
    mmu_interrupts: Interrupts,
    power: Power,
    spaces: Vec<AddressSpaceRegisters>,
    processor: Processor,
    flush_id: u32,
    groups: Vec<Group>,
    idle: bool,
    /// Counts resets and halts: results of streams from before are dropped.
    epoch: u64,
    outstanding: usize,
    reset_pending: bool,
}

impl<B: Bus> StreamDevice<B> {
    /// A GPU that just got power.
    pub fn new(gpu: &'static StreamGpu, bus: Arc<B>, options: Options) -> StreamDevice<B> {
        let mut device = StreamDevice {
            gpu,
            bus,
            work: options.new_work(),
            threads: options.new_threads(),
            options,
            clock: Clock::new(),
            words: Vec::new(),
            interrupts: Interrupts::default(),
            job_interrupts: Interrupts::default(),
            mmu_interrupts: Interrupts::default(),
            power: Power::new(&gpu.profile),
            spaces: Vec::new(),
            processor: Processor::Disabled,
            flush_id: 1,
            groups: Vec::new(),
            idle: true,
            epoch: 0,
            outstanding: 0,
            reset_pending: false,
        };
        device.clear();
        device
    }

    /// The GPU's profile.
    pub fn profile(&self) -> &'static Profile {
        &self.gpu.profile
    }

    /// The GPU's memory.
    pub fn bus(&self) -> &Arc<B> {
        &self.bus
    }

    /// Levels of the interrupt lines.
    pub fn irq(&self) -> IrqLines {
        IrqLines {
            job: self.job_interrupts.status() != 0,
            mmu: self.mmu_interrupts.status() != 0,
            gpu: self.interrupts.status() != 0,
        }
    }

    /// Runs all that waits. Returns the number of pieces.
    pub fn run(&mut self) -> usize {
        let mut count = 0;
        while let Some(work) = self.take_work() {
            let finished = work.execute();
            self.finish(finished);
            count += 1;
        }
        count
    }

    /// Whether a thread runs a stream.
    pub fn is_busy(&self) -> bool {
        self.outstanding != 0
    }

    fn memory(&self) -> Memory<B> {
        let space = self.spaces.first().map(|space| space.space().clone());
        Memory::new(self.bus.clone(), space.unwrap_or_default())
    }

    /// Lets the firmware act; without mapped memory it cannot go on.
    fn attempt(&mut self, act: impl FnOnce(&mut Self) -> Result<(), MmuFault>) {
        if let Err(fault) = act(self) {
            log!(self.options.log, Error, "the firmware's memory: {fault}");
            self.abandon_groups();
            self.report_fault(0, &fault);
            self.set_processor(Processor::Fatal);
        }
    }

    fn set_processor(&mut self, state: Processor) {
        log!(self.options.log, Info, "firmware: {state:?}");
        self.processor = state;
        self.interrupts.raise(MCU_STATUS_CHANGED);
    }

    fn abandon_groups(&mut self) {
        for group in &mut self.groups {
            group.abort();
            *group = Group::new(self.gpu.streams);
        }
        self.epoch += 1;
        self.idle = true;
    }

    fn report_fault(&mut self, space: u32, fault: &MmuFault) {
        log!(self.options.log, Error, "address space {space}: {fault}");
        if let Some(registers) = self.spaces.get_mut(space as usize) {
            registers.report(fault);
        }
        self.mmu_interrupts.raise(match is_bus_fault(fault) {
            true => mmu::bus_error(space),
            false => mmu::page_fault(space),
        });
    }
}
