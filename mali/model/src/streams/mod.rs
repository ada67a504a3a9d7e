// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams of architecture 10.
//!
//! Instructions end in order: scoreboards never block, but reading a register before waiting for its load is a
//! fault. [`Streams`] runs one queue: a wait that does not hold is a fault. A [`StreamDevice`](crate::StreamDevice)
//! has other queues meanwhile.

mod runner;

use std::fmt;
use std::sync::Arc;

use gpureplay_memory::Bus;
use gpureplay_shader::{MmuFault, Threads, WorkLimit};
use mali_facts::registers::{TranslationConfig, gpu};
use mali_facts::{StreamGpu, StreamStatus};
use mali_isa::valhall::streams::Sequencer;

pub(crate) use self::runner::{Happened, LONGEST, Runner, asked};
use self::runner::{fault, refused};
use crate::clock::Clock;
use crate::environment::{ChainControl, Environment};
use crate::gpu::Options;
use crate::log::log;
use crate::space::Space;
use crate::walk::Translation;

/// Runs command streams.
pub struct Streams<B: Bus> {
    gpu: &'static StreamGpu,
    bus: Arc<B>,
    options: Options,
    threads: Arc<Threads>,
    work: Arc<WorkLimit>,
    clock: Clock,
}

/// Why a stream ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFault {
    /// Exception.
    pub status: StreamStatus,
    /// Instruction's address.
    pub at: u64,
    /// Refused access, if any.
    pub refused: Option<MmuFault>,
    /// Cause.
    pub text: String,
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: {}", self.status, self.at, self.text)
    }
}

impl std::error::Error for StreamFault {}

impl<B: Bus> Streams<B> {
    /// A powered GPU. Options about stalls have no effect.
    pub fn new(gpu: &'static StreamGpu, bus: Arc<B>, options: Options) -> Streams<B> {
        Streams {
            gpu,
            bus,
            work: options.new_work(),
            threads: options.new_threads(),
            options,
            clock: Clock::new(),
        }
    }

    /// Modelled GPU.
    pub fn gpu(&self) -> &'static StreamGpu {
        self.gpu
    }

    /// 0 if the register does not identify the GPU.
    pub fn identity(&self, register: u32) -> u32 {
        let profile = &self.gpu.profile;
        match register {
            gpu::GPU_ID => profile.gpu_id.0,
            gpu::L2_FEATURES => profile.l2_features,
            gpu::MMU_FEATURES => profile.mmu_features,
            gpu::THREAD_MAX_THREADS => profile.max_threads,
            gpu::THREAD_FEATURES => profile.thread_features,
            gpu::SHADER_PRESENT_LO => profile.shader_present as u32,
            gpu::SHADER_PRESENT_HI => (profile.shader_present >> 32) as u32,
            _ => 0,
        }
    }

    /// A 62.5 MHz counter.
    pub fn timestamp(&self) -> u64 {
        self.clock.timestamp()
    }

    /// Replaces [`Options::work_limit`].
    pub fn set_work_limit(&mut self, clauses: u64) {
        self.work.set(clauses);
    }

    /// Renews the work limit.
    pub fn renew_work(&self) {
        self.work.renew();
    }

    /// The limit, if used up since the last [`Streams::renew_work`].
    pub fn used_up(&self) -> Option<u64> {
        self.work.is_used_up().then(|| self.work.limit())
    }

    pub(crate) fn bus(&self) -> &B {
        &self.bus
    }

    pub(crate) fn space(&self, root: u64) -> Space {
        let space = Space::default();
        let config = TranslationConfig::aarch64_4k().0;
        space.update(Translation::new(root, config, &self.gpu.profile));
        space
    }

    /// Runs a stream as a ring calls it, with AArch64 page tables at bus address `root`.
    ///
    /// # Errors
    /// The first fault; earlier effects stay.
    pub fn run(
        &self,
        queue: &mut Sequencer,
        root: u64,
        address: u64,
        bytes: u32,
    ) -> Result<(), StreamFault> {
        let budget = self.options.clause_budget;
        let environment = Environment {
            profile: &self.gpu.profile,
            bus: self.bus.clone(),
            space: Arc::new(self.space(root)),
            threads: self.threads.clone(),
            control: Arc::new(ChainControl::new(budget, self.work.clone())),
            clock: self.clock,
            log: self.options.log.clone(),
            observer: self.options.observer.clone(),
            notify: None,
            seed: self.options.seed,
            cores_ready: self.gpu.profile.shader_present,
            l2_ready: true,
        };
        let runner = Runner::new(&environment);
        let started = queue.call(address, bytes);
        let end = match started {
            Ok(()) => to_its_end(&runner, queue),
            Err(fault) => Err(refused(address, fault)),
        };
        end.inspect_err(|fault| log!(self.options.log, Error, "stream {address:#x}: {fault}"))
    }
}

fn to_its_end<B: Bus>(runner: &Runner<'_, B>, queue: &mut Sequencer) -> Result<(), StreamFault> {
    for _ in 0..LONGEST {
        let Some(at) = queue.address() else {
            return Ok(());
        };
        let word = runner.fetch(at, at)?;
        if let Happened::Blocked(sync) = runner.step(queue, at, word, &mut 0)? {
            let text = format!(
                "the wait for {:#x} never ends: it stays on its side of {}",
                sync.address, sync.value
            );
            return Err(fault(StreamStatus::CS_RES_TERM, at, text));
        }
    }
    let text = format!("no end after {LONGEST} instructions");
    Err(fault(StreamStatus::CS_RES_TERM, 0, text))
}
