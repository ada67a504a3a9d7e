// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU as its driver sees it: registers, interrupts, and chains that wait to be run.

use std::sync::Arc;

use mali_memory::Bus;
use mali_regs::{
    Access, AddressSpaceCommand, Block, GpuCommand, GpuInterrupt, JobCommand, Located, WINDOW_SIZE,
    address_space, gpu, job, job_slot, lookup, mmu,
};
use mali_shader::{MmuFault, Threads};

use crate::address_space::AddressSpaceRegisters;
use crate::chain::{self, Chain, Environment, Outcome};
use crate::clock::Clock;
use crate::interrupt::{Interrupts, IrqLines};
use crate::log::{Log, NoLog, Observer, log};
use crate::power::{self, Domain, Function, Power};
use crate::profile::Profile;
use crate::slot::{Slot, Stop};
use crate::space::{FaultPolicy, JobMemory, is_bus_fault};

/// What the host decides about a model.
#[derive(Clone)]
pub struct Options {
    /// Host threads that run work groups; 0: one for each processor.
    pub threads: usize,
    /// What happens to an access that the MMU refuses.
    pub faults: FaultPolicy,
    /// Clauses that one chain may execute before it is terminated (a batch of lanes counts once).
    pub clause_budget: u64,
    /// Where messages go.
    pub log: Arc<dyn Log>,
    /// Who watches jobs.
    pub observer: Option<Arc<dyn Observer>>,
    /// With [`FaultPolicy::Stall`]: called by a thread that runs a job when an access stalls (true) and when the
    /// wait is over (false). For true the callee calls [`Gpu::poll_faults`] and looks at the interrupt lines.
    pub stalled: Option<Arc<dyn Fn(bool) + Send + Sync>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            threads: 0,
            faults: FaultPolicy::Report,
            clause_budget: 1 << 40,
            log: Arc::new(NoLog),
            observer: None,
            stalled: None,
        }
    }
}

/// A Mali GPU with job-manager registers whose memory is `B`.
///
/// Register accesses never wait for jobs. A job chain that software starts waits until [`run`](Gpu::run) is called,
/// or until a thread takes it with [`take_work`](Gpu::take_work), runs it and gives it back.
pub struct Gpu<B: Bus> {
    profile: &'static Profile,
    bus: Arc<B>,
    options: Options,
    threads: Arc<Threads>,
    clock: Clock,
    words: Vec<u32>,
    interrupts: Interrupts,
    job_interrupts: Interrupts,
    mmu_interrupts: Interrupts,
    power: Power,
    slots: Vec<Slot>,
    spaces: Vec<AddressSpaceRegisters>,
    /// JOB_INT_JS_STATE: follows the slots, but stands still for a slot from its interrupt until that is cleared.
    job_state: u32,
    flush_id: u32,
    cycle_counter: bool,
    /// Counts resets, so that chains from before one cannot touch what is after it.
    epoch: u64,
    outstanding: usize,
    reset_pending: bool,
}

/// A chain to be run, away from the registers.
pub struct Work<B: Bus> {
    chain: Chain,
    environment: Environment<B>,
    epoch: u64,
}

/// A chain that was run, to be given back with [`Gpu::finish`].
#[derive(Debug)]
#[must_use = "the job slot stays busy until the work is finished"]
pub struct Finished {
    slot: u32,
    outcome: Outcome,
    epoch: u64,
}

impl<B: Bus> Work<B> {
    /// Job slot the chain runs on.
    pub fn slot(&self) -> u32 {
        self.chain.slot
    }

    /// Runs the chain to its end, its first fault or a stop.
    pub fn execute(self) -> Finished {
        let outcome = chain::run(&self.environment, &self.chain);
        Finished {
            slot: self.chain.slot,
            outcome,
            epoch: self.epoch,
        }
    }
}

impl<B: Bus> Gpu<B> {
    /// A GPU that has just got power.
    pub fn new(profile: &'static Profile, bus: Arc<B>, options: Options) -> Gpu<B> {
        let threads = match options.threads {
            0 => Threads::default(),
            count => Threads::new(count),
        };
        let mut gpu = Gpu {
            profile,
            bus,
            options,
            threads: Arc::new(threads),
            clock: Clock::new(),
            words: vec![0; (WINDOW_SIZE / 4) as usize],
            interrupts: Interrupts::default(),
            job_interrupts: Interrupts::default(),
            mmu_interrupts: Interrupts::default(),
            power: Power::new(profile),
            slots: (0..profile.js_present.count_ones())
                .map(Slot::new)
                .collect(),
            spaces: (0..profile.as_present.count_ones())
                .map(|_| AddressSpaceRegisters::new())
                .collect(),
            job_state: 0,
            flush_id: 1,
            cycle_counter: false,
            epoch: 0,
            outstanding: 0,
            reset_pending: false,
        };
        gpu.set_identity();
        gpu
    }

    /// The GPU that is modelled.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// The memory.
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

    /// True when a chain waits to be run.
    pub fn has_work(&self) -> bool {
        self.slots.iter().any(Slot::has_work)
    }

    /// True while a chain is being run by some thread.
    pub fn is_busy(&self) -> bool {
        self.outstanding != 0
    }

    /// Runs everything that waits, including chains that start meanwhile. Returns how many chains ran.
    pub fn run(&mut self) -> usize {
        let mut count = 0;
        while let Some(work) = self.take_work() {
            let finished = work.execute();
            self.finish(finished);
            count += 1;
        }
        count
    }

    /// Takes a chain that waits, for running it on another thread.
    pub fn take_work(&mut self) -> Option<Work<B>> {
        let started = self.slots.iter_mut().find_map(Slot::take)?;
        let chain = started.chain;
        let index = chain.config.address_space() as usize;
        // A space that does not exist translates nothing.
        let space = match self.spaces.get(index) {
            Some(space) => space.space().clone(),
            None => Arc::default(),
        };
        let notify = match self.options.faults {
            FaultPolicy::Report => None,
            FaultPolicy::Stall => self.options.stalled.clone(),
        };
        self.outstanding += 1;
        log!(
            self.options.log,
            Info,
            "slot {} runs chain {:#x} in address space {index}, affinity {:#x}, configuration {:#x}",
            chain.slot,
            chain.head,
            chain.affinity,
            chain.config.0
        );
        Some(Work {
            chain,
            environment: Environment {
                profile: self.profile,
                bus: self.bus.clone(),
                space,
                threads: self.threads.clone(),
                control: started.control,
                clock: self.clock,
                log: self.options.log.clone(),
                observer: self.options.observer.clone(),
                notify,
                cores_ready: self.power.ready(Domain::Shader),
                l2_ready: self.power.ready(Domain::L2) != 0,
            },
            epoch: self.epoch,
        })
    }

    /// Gives back a chain that was run: status registers and interrupts follow.
    pub fn finish(&mut self, finished: Finished) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if finished.epoch == self.epoch {
            self.retire(finished.slot, &finished.outcome);
        }
        self.complete_reset();
    }

    /// Shows faults of stalled accesses in the registers and raises their interrupts.
    pub fn poll_faults(&mut self) {
        for index in 0..self.spaces.len() {
            if let Some(fault) = self.spaces[index].space().take_unreported() {
                self.report_fault(index as u32, &fault);
            }
        }
    }

    /// Reads a register. Offsets without a register, and registers that can only be written, read 0.
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

    /// Writes a register. Offsets without a register, and registers that can only be read, ignore it.
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

    fn command(&mut self, value: u32) {
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

    fn flushed(&mut self) {
        self.flush_id = self.flush_id.wrapping_add(1);
    }

    /// Dumps the performance counters, all zero, where PRFCNT_BASE says.
    fn sample_counters(&mut self) {
        let space = self.word(gpu::PRFCNT_CONFIG) >> 4 & 0xf;
        let base = u64::from(self.word(gpu::PRFCNT_BASE_LO))
            | u64::from(self.word(gpu::PRFCNT_BASE_HI)) << 32;
        let cores = self.profile.core_id_range() as usize;
        // One block of 64 words each for job manager, tiler, every level-2 slice and every core.
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
        };
        match memory.write(base, &dump) {
            Ok(()) => self
                .interrupts
                .raise(GpuInterrupt::PRFCNT_SAMPLE_COMPLETED.bits()),
            Err(fault) => self.report_fault(space, &fault),
        }
    }

    /// Soft and hard reset are the same: there is no bus traffic to wait for, only chains that still run.
    fn reset(&mut self) {
        log!(self.options.log, Info, "reset");
        for slot in &mut self.slots {
            slot.reset();
        }
        for space in &mut self.spaces {
            space.space().wake();
            *space = AddressSpaceRegisters::new();
        }
        self.words.fill(0);
        for register in mali_regs::all() {
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

    /// A reset is over when no chain from before it can write to memory any more.
    fn complete_reset(&mut self) {
        if self.reset_pending && self.outstanding == 0 {
            self.reset_pending = false;
            self.interrupts.raise(GpuInterrupt::RESET_COMPLETED.bits());
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

    /// Starts the queued chain when the slot is free, and lets JS_STATE follow.
    fn update_slot(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        if self.job_interrupts.raw & job::failed(index) == 0 && !slot.is_running() {
            slot.promote(self.options.clause_budget);
        }
        if self.job_interrupts.raw & (job::done(index) | job::failed(index)) == 0 {
            self.latch_state(index);
        }
    }

    fn latch_state(&mut self, index: u32) {
        let bits = self.slots.get(index as usize).map_or(0, Slot::state_bits);
        self.job_state = self.job_state & !(job::active(index) | job::next_pending(index)) | bits;
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

    fn retire(&mut self, index: u32, outcome: &Outcome) {
        let Some((space, interrupt)) = self
            .slots
            .get_mut(index as usize)
            .and_then(|slot| slot.retire(outcome))
        else {
            return;
        };
        self.flushed();
        log!(
            self.options.log,
            Info,
            "slot {index} ended {} at job {:#x}",
            outcome.status,
            outcome.tail
        );
        if let Some(fault) = &outcome.mmu {
            // A fault that stalled was shown when it happened.
            let registers = self.spaces.get(space as usize);
            if !registers.is_some_and(|registers| registers.space().take_shown()) {
                self.report_fault(space, fault);
            }
        }
        self.job_interrupts.raise(interrupt);
        self.update_slot(index);
    }

    fn report_fault(&mut self, space: u32, fault: &MmuFault) {
        log!(self.options.log, Error, "address space {space}: {fault}");
        if let Some(registers) = self.spaces.get_mut(space as usize) {
            registers.report(fault);
        }
        self.mmu_interrupts.raise(if is_bus_fault(fault) {
            mmu::bus_error(space)
        } else {
            mmu::page_fault(space)
        });
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

    fn word(&self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).copied().unwrap_or(0)
    }

    fn set_word(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut(offset as usize / 4) {
            *word = value;
        }
    }

    fn set_identity(&mut self) {
        for (offset, value) in self.profile.identity() {
            self.set_word(offset, value);
        }
    }
}
