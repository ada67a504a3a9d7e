// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams: what the front end of a GPU of architecture 10 executes for a queue.
//!
//! Instructions end in their order, so scoreboards never block; a register that is read before its load was waited for is a fault. No
//! other queue runs meanwhile: a wait for memory that does not hold can never end, and is a fault too.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use mali_facts::registers::{JobStatus, TranslationConfig};
use mali_facts::valhall::of_registers;
use mali_facts::{StreamGpu, StreamStatus};
use mali_memory::Bus;
use mali_shader::{Cores, Dispatch, JOB_COST, Threads, WorkLimit};
use mali_valhall::streams::{Compute, Effect, Fault, Sequencer, Sync, SyncKind};

use crate::clock::Clock;
use crate::compute;
use crate::environment::{ChainControl, Environment, JobFault};
use crate::gpu::Options;
use crate::log::{JobReport, log};
use crate::space::{JobMemory, Space};
use crate::walk::Translation;

/// Instructions of one submission, at most; a longer one is taken to be a loop.
const LONGEST: u32 = 1 << 20;

/// What a GPU with command streams computes.
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
    /// The exception's code.
    pub status: StreamStatus,
    /// Address of the instruction.
    pub at: u64,
    /// What was wrong.
    pub text: String,
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: {}", self.status, self.at, self.text)
    }
}

impl std::error::Error for StreamFault {}

impl<B: Bus> Streams<B> {
    /// A GPU with power on. Of the options, those about page faults that a driver repairs mean nothing here.
    pub fn new(gpu: &'static StreamGpu, bus: Arc<B>, options: Options) -> Streams<B> {
        let threads = match options.threads {
            0 => Threads::default(),
            count => Threads::new(count),
        };
        Streams {
            gpu,
            bus,
            work: Arc::new(WorkLimit::new(options.work_limit.unwrap_or(u64::MAX))),
            options,
            threads: Arc::new(threads),
            clock: Clock::new(),
        }
    }

    /// The GPU that is modelled.
    pub fn gpu(&self) -> &'static StreamGpu {
        self.gpu
    }

    /// Ticks of a 62.5 MHz counter, as shaders and streams read it.
    pub fn timestamp(&self) -> u64 {
        self.clock.timestamp()
    }

    /// Lets streams do so much from now on, in place of [`Options::work_limit`].
    pub fn set_work_limit(&mut self, clauses: u64) {
        self.work.set(clauses);
    }

    /// Lets the streams that follow do together what the work limit says.
    pub fn renew_work(&self) {
        self.work.renew();
    }

    /// The work limit, if something could not be done any more since the last [`Streams::renew_work`].
    pub fn used_up(&self) -> Option<u64> {
        self.work.is_used_up().then(|| self.work.limit())
    }

    /// Runs a stream of `bytes` bytes at `address` as a driver's ring calls it, through the AArch64 page tables at the bus address `root`.
    ///
    /// # Errors
    /// The first fault. What ran before it has had its effect.
    pub fn run(
        &self,
        queue: &mut Sequencer,
        root: u64,
        address: u64,
        bytes: u32,
    ) -> Result<(), StreamFault> {
        let space = Space::default();
        let config = TranslationConfig::aarch64_4k().0;
        space.update(Translation::new(root, config, &self.gpu.profile));
        let budget = self.options.clause_budget;
        let environment = Environment {
            profile: &self.gpu.profile,
            bus: self.bus.clone(),
            space: Arc::new(space),
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
        let observer = environment.observer.as_deref();
        let runner = Runner {
            memory: JobMemory {
                bus: &*environment.bus,
                space: &environment.space,
                stall: None,
                observer: observer.filter(|observer| observer.wants_pages()),
            },
            environment: &environment,
        };
        let started = queue.call(address, bytes);
        let end = match started {
            Ok(()) => runner.run(queue),
            Err(fault) => Err(refused(address, fault)),
        };
        end.inspect_err(|fault| log!(self.options.log, Error, "stream {address:#x}: {fault}"))
    }
}

struct Runner<'a, B: Bus> {
    environment: &'a Environment<B>,
    memory: JobMemory<'a, B>,
}

impl<B: Bus> Runner<'_, B> {
    fn run(&self, queue: &mut Sequencer) -> Result<(), StreamFault> {
        for _ in 0..LONGEST {
            let Some(at) = queue.address() else {
                return Ok(());
            };
            let failed = |fault: JobFault| StreamFault {
                status: StreamStatus(fault.status.0),
                at,
                text: fault.text,
            };
            self.charge(1, at)?;
            let word = self
                .memory
                .bytes(at)
                .map_err(|fault| failed(fault.into()))?;
            let effect = queue.step(u64::from_le_bytes(word));
            match effect.map_err(|fault| refused(at, fault))? {
                // Memory is coherent with the host's.
                Effect::None | Effect::Flush => {}
                Effect::Compute(compute) => {
                    self.charge(JOB_COST, at)?;
                    self.compute(at, &compute).map_err(failed)?;
                }
                Effect::Load(transfer) => {
                    for (register, address) in transfer.words() {
                        let word = self.memory.bytes(address);
                        let word = word.map_err(|fault| failed(fault.into()))?;
                        queue.load(register, u32::from_le_bytes(word));
                    }
                }
                Effect::Store(transfer) => {
                    for (register, address) in transfer.words() {
                        let value = queue.get(register).map_err(|fault| refused(at, fault))?;
                        let stored = self.write(address, &value.to_le_bytes());
                        stored.map_err(failed)?;
                    }
                }
                Effect::Sync(sync) => self.sync(at, &sync)?,
                Effect::StoreState { address, state } => {
                    let value = match state {
                        0 => self.environment.clock.timestamp(),
                        1 => self.environment.clock.cycles(),
                        _ => {
                            let text = format!("STORE_STATE {state} is not modelled");
                            return Err(fault(StreamStatus::CS_INVALID_INSTRUCTION, at, text));
                        }
                    };
                    let stored = self.write(address, &value.to_le_bytes());
                    stored.map_err(failed)?;
                }
            }
        }
        let text = format!("no end after {LONGEST} instructions");
        Err(fault(StreamStatus::CS_RES_TERM, 0, text))
    }

    fn charge(&self, cost: u64, at: u64) -> Result<(), StreamFault> {
        let control = &self.environment.control.shader;
        if control.charge(cost) {
            return Ok(());
        }
        let limit = control.work().limit();
        let text = format!("the limit of {limit} clauses is used up");
        Err(fault(StreamStatus::CS_RES_TERM, at, text))
    }

    fn compute(&self, at: u64, compute: &Compute) -> Result<(), JobFault> {
        let started = Instant::now();
        let environment = self.environment;
        let [count, offset] = [compute.count, compute.offset];
        let payload = [
            compute.size,
            compute.tasks,
            count[0],
            count[1],
            count[2],
            offset[0],
            offset[1],
            offset[2],
        ];
        let pointers = [
            compute.resources,
            compute.program,
            compute.storage,
            compute.uniforms,
        ];
        let (payload, shaders) = of_registers(payload, pointers, compute.attribute_offset);
        let dispatch =
            compute::from_registers(environment.profile, &self.memory, at, &payload, &shaders);
        let cores = Cores {
            usable: environment.cores_ready,
            seed: environment.seed,
        };
        let (report, result) = match dispatch {
            Ok(dispatch) => {
                let dispatch = Dispatch { cores, ..dispatch };
                compute::launch(environment, &self.memory, at, dispatch)
            }
            Err(fault) => (None, Err(fault)),
        };
        if let Some(observer) = &environment.observer {
            let failed = result.as_ref().err().map(|fault| fault.status);
            observer.job(&JobReport {
                slot: 0,
                address_space: 0,
                address: at,
                kind: "COMPUTE",
                status: failed.unwrap_or(JobStatus::DONE),
                duration: started.elapsed(),
                compute: report,
            });
        }
        result
    }

    /// A sync object is a value and, behind it, 32 bits of error.
    fn sync(&self, at: u64, sync: &Sync) -> Result<(), StreamFault> {
        let size = if sync.wide { 8 } else { 4 };
        let failed = |fault: JobFault| StreamFault {
            status: StreamStatus(fault.status.0),
            at,
            text: fault.text,
        };
        let mut bytes = [0; 8];
        let read = self.memory.read(sync.address, &mut bytes[..size]);
        read.map_err(|fault| failed(fault.into()))?;
        let found = u64::from_le_bytes(bytes);
        let value = match sync.kind {
            SyncKind::Add => found.wrapping_add(sync.value),
            SyncKind::Set => sync.value,
            SyncKind::Wait(condition) => {
                let error = self.memory.bytes(sync.address.wrapping_add(size as u64));
                let error = u32::from_le_bytes(error.map_err(|fault| failed(fault.into()))?);
                if sync.error && error != 0 {
                    let text = format!("the sync object has the error {error:#x}");
                    return Err(fault(StreamStatus::CS_INHERIT_FAULT, at, text));
                }
                if condition.holds(found, sync.value) {
                    return Ok(());
                }
                let text = format!(
                    "the wait for {:#x} never ends: {found} stays on its side of {}",
                    sync.address, sync.value
                );
                return Err(fault(StreamStatus::CS_RES_TERM, at, text));
            }
        };
        let stored = self.write(sync.address, &value.to_le_bytes()[..size]);
        stored.map_err(failed)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), JobFault> {
        self.memory.write(address, bytes)?;
        if let Some(observer) = &self.environment.observer {
            observer.wrote(address, bytes.len() as u64);
        }
        Ok(())
    }
}

fn fault(status: StreamStatus, at: u64, text: String) -> StreamFault {
    StreamFault { status, at, text }
}

/// The exception of an instruction that the sequencer refuses.
fn refused(at: u64, found: Fault) -> StreamFault {
    let status = match found {
        Fault::CallDepth => StreamStatus::CS_CALL_STACK_OVERFLOW,
        Fault::Unknown(_)
        | Fault::Unexplained { .. }
        | Fault::Reserved { .. }
        | Fault::Absent(_) => StreamStatus::CS_INVALID_INSTRUCTION,
        _ => StreamStatus::CS_CONFIG_FAULT,
    };
    fault(status, at, found.to_string())
}
