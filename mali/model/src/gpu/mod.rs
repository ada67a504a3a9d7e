// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU as its driver sees it.

mod control;
mod registers;

use std::sync::Arc;

use gpureplay_memory::Bus;
use gpureplay_shader::{MmuFault, Threads, WorkLimit};
use mali_facts::Profile;
use mali_facts::registers::{JobStatus, WINDOW_SIZE, job, mmu};

use crate::address_space::AddressSpaceRegisters;
use crate::chain::{self, Chain, Outcome};
use crate::clock::Clock;
use crate::environment::Environment;
use crate::interrupt::{Interrupts, IrqLines};
use crate::log::{Log, NoLog, log};
use crate::observer::Observer;
use crate::power::{Domain, Power};
use crate::slot::Slot;
use crate::space::{FaultPolicy, Space, is_bus_fault};

/// The host's choices about a model.
#[derive(Clone)]
pub struct Options {
    /// Host threads; 0: one per processor.
    pub threads: usize,
    /// What refused accesses do.
    pub faults: FaultPolicy,
    /// Clauses per chain; a batch of lanes is one.
    pub clause_budget: u64,
    /// Clauses of all chains until [`Gpu::renew_work`]; jobs and decoding count as clauses that take as long. A job
    /// beyond is terminated, and [`Gpu::used_up`] names it. `None`: no limit.
    pub work_limit: Option<u64>,
    /// Order and cores of work groups, and order of jobs within dependencies; hardware promises none. 0: in order,
    /// cores in turn; else by lot.
    pub seed: u64,
    /// Where messages go.
    pub log: Arc<dyn Log>,
    /// Watches jobs.
    pub observer: Option<Arc<dyn Observer>>,
    /// With [`FaultPolicy::Stall`]: the job's thread calls it for a stall (true) and its end (false). For true the
    /// callee calls [`Gpu::poll_faults`] and looks at the interrupt lines.
    pub stalled: Option<Arc<dyn Fn(bool) + Send + Sync>>,
}

impl Options {
    pub(crate) fn new_threads(&self) -> Arc<Threads> {
        Arc::new(match self.threads {
            0 => Threads::default(),
            count => Threads::new(count),
        })
    }

    pub(crate) fn new_work(&self) -> Arc<WorkLimit> {
        Arc::new(WorkLimit::new(self.work_limit.unwrap_or(u64::MAX)))
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            threads: 0,
            faults: FaultPolicy::Report,
            clause_budget: 1 << 40,
            work_limit: None,
            seed: 0,
            log: Arc::new(NoLog),
            observer: None,
            stalled: None,
        }
    }
}

/// Mali GPU with job-manager registers.
///
/// Register accesses never wait for jobs. Chains wait for [`run`](Gpu::run) or a thread with
/// [`take_work`](Gpu::take_work).
pub struct Gpu<B: Bus> {
    profile: &'static Profile,
    bus: Arc<B>,
    options: Options,
    threads: Arc<Threads>,
    work: Arc<WorkLimit>,
    used_up: Option<UsedUp>,
    clock: Clock,
    words: Vec<u32>,
    interrupts: Interrupts,
    job_interrupts: Interrupts,
    mmu_interrupts: Interrupts,
    power: Power,
    slots: Vec<Slot>,
    spaces: Vec<AddressSpaceRegisters>,
    /// JOB_INT_JS_STATE: a slot's part stands still from its interrupt until that is cleared.
    job_state: u32,
    flush_id: u32,
    cycle_counter: bool,
    /// Counts resets: results of chains from before are dropped.
    epoch: u64,
    outstanding: usize,
    reset_pending: bool,
}

/// Chain to run.
pub struct Work<B: Bus> {
    chain: Chain,
    environment: Environment<B>,
    epoch: u64,
}

/// Job that used up the work limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedUp {
    /// Descriptor's address.
    pub job: u64,
    /// Job slot.
    pub slot: u32,
    /// Clauses.
    pub limit: u64,
}

/// Result for [`Gpu::finish`].
#[derive(Debug)]
#[must_use = "the job slot stays busy until the work is finished"]
pub struct Finished {
    slot: u32,
    outcome: Outcome,
    epoch: u64,
}

impl<B: Bus> Work<B> {
    /// The chain's job slot.
    pub fn slot(&self) -> u32 {
        self.chain.slot
    }

    /// Runs to its end, fault or stop.
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
    /// A GPU that just got power.
    pub fn new(profile: &'static Profile, bus: Arc<B>, options: Options) -> Gpu<B> {
        let mut gpu = Gpu {
            profile,
            bus,
            work: options.new_work(),
            used_up: None,
            threads: options.new_threads(),
            options,
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

    /// The GPU's profile.
    pub fn profile(&self) -> &'static Profile {
        self.profile
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

    pub(crate) fn space(&self, index: u32) -> Option<Arc<Space>> {
        let registers = self.spaces.get(index as usize)?;
        Some(registers.space().clone())
    }

    /// Renews [`Options::work_limit`].
    pub fn renew_work(&mut self) {
        self.work.renew();
        self.used_up = None;
    }

    /// Replaces [`Options::work_limit`].
    pub fn set_work_limit(&mut self, clauses: u64) {
        self.work.set(clauses);
        self.used_up = None;
    }

    /// The job that used up the limit since the last [`Gpu::renew_work`].
    pub fn used_up(&self) -> Option<UsedUp> {
        self.used_up
    }

    /// Whether a chain waits.
    pub fn has_work(&self) -> bool {
        self.slots.iter().any(Slot::has_work)
    }

    /// Whether a thread runs a chain.
    pub fn is_busy(&self) -> bool {
        self.outstanding != 0
    }

    /// Runs all waiting chains. Returns how many.
    pub fn run(&mut self) -> usize {
        let mut count = 0;
        while let Some(work) = self.take_work() {
            let finished = work.execute();
            self.finish(finished);
            count += 1;
        }
        count
    }

    /// Takes a chain for another thread.
    pub fn take_work(&mut self) -> Option<Work<B>> {
        let started = self.slots.iter_mut().find_map(Slot::take)?;
        let chain = started.chain;
        let index = chain.config.address_space() as usize;
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
                seed: self.options.seed,
                cores_ready: self.power.ready(Domain::Shader),
                l2_ready: self.power.ready(Domain::L2) != 0,
            },
            epoch: self.epoch,
        })
    }

    /// Takes a chain back: updates registers and interrupts.
    pub fn finish(&mut self, finished: Finished) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if finished.outcome.status == JobStatus::TERMINATED && self.work.is_used_up() {
            self.used_up = Some(UsedUp {
                job: finished.outcome.tail,
                slot: finished.slot,
                limit: self.work.limit(),
            });
        }
        if finished.epoch == self.epoch {
            self.retire(finished.slot, &finished.outcome);
        }
        self.complete_reset();
    }

    /// Shows stalled accesses' faults.
    pub fn poll_faults(&mut self) {
        for index in 0..self.spaces.len() {
            if let Some(fault) = self.spaces[index].space().take_unreported() {
                self.report_fault(index as u32, &fault);
            }
        }
    }

    fn update_slot(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        if self.job_interrupts.raw & job::failed(index) == 0 && !slot.is_running() {
            slot.promote(self.options.clause_budget, &self.work);
        }
        if self.job_interrupts.raw & (job::done(index) | job::failed(index)) == 0 {
            self.latch_state(index);
        }
    }

    fn latch_state(&mut self, index: u32) {
        let bits = self.slots.get(index as usize).map_or(0, Slot::state_bits);
        self.job_state = self.job_state & !(job::active(index) | job::next_pending(index)) | bits;
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
            // A stalled access has shown its fault.
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

    fn word(&self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).copied().unwrap_or(0)
    }

    fn set_word(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut(offset as usize / 4) {
            *word = value;
        }
    }
}
