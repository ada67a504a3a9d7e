// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one instruction.

use std::time::Instant;

use gpureplay_memory::Bus;
use gpureplay_shader::{Cores, JOB_COST, MmuFault};
use mali_facts::StreamStatus;
use mali_facts::registers::JobStatus;
use mali_facts::valhall::{ComputePayload, ShaderEnvironment, of_registers};
use mali_isa::valhall::streams::{
    Compute, Effect, Fault, Instruction, Op, Sequencer, Sync, SyncKind,
};

use super::StreamFault;
use crate::compute;
use crate::environment::{Environment, JobFault};
use crate::observer::JobReport;
use crate::space::JobMemory;

/// Of a submission; more are taken for a loop.
pub(crate) const LONGEST: u32 = 1 << 20;

pub(crate) enum Happened {
    Nothing,
    Changed,
    Blocked(Sync),
}

pub(crate) struct Runner<'a, B: Bus> {
    environment: &'a Environment<B>,
    memory: JobMemory<'a, B>,
}

impl<'a, B: Bus> Runner<'a, B> {
    pub(crate) fn new(environment: &'a Environment<B>) -> Runner<'a, B> {
        let observer = environment.observer.as_deref();
        Runner {
            memory: JobMemory {
                bus: &*environment.bus,
                space: &environment.space,
                stall: None,
                observer: observer.filter(|observer| observer.wants_pages()),
            },
            environment,
        }
    }

    pub(crate) fn fetch(&self, address: u64, at: u64) -> Result<u64, StreamFault> {
        let word = self.memory.bytes(address);
        word.map(u64::from_le_bytes)
            .map_err(|fault| unmapped(at, fault))
    }

    /// After an error, dispatches do nothing.
    pub(crate) fn step(
        &self,
        queue: &mut Sequencer,
        at: u64,
        word: u64,
        error: &mut u32,
    ) -> Result<Happened, StreamFault> {
        let failed = |fault: JobFault| StreamFault::of(at, fault);
        self.charge(1, at)?;
        match queue.step(word).map_err(|fault| refused(at, fault))? {
            Effect::None => {
                let op = Instruction::decode(word).map(|instruction| instruction.op());
                if op == Some(Op::ErrorBarrier) {
                    *error = 0;
                }
            }
            // Memory is coherent with the host's.
            Effect::Flush => {}
            Effect::Compute(_) if *error != 0 => {}
            Effect::Compute(compute) => {
                self.charge(JOB_COST, at)?;
                self.compute(at, &compute).map_err(failed)?;
            }
            Effect::Load(transfer) => {
                for (register, address) in transfer.words() {
                    let word = self.memory.bytes(address);
                    let word = word.map_err(|fault| unmapped(at, fault))?;
                    queue.load(register, u32::from_le_bytes(word));
                }
            }
            Effect::Store(transfer) => {
                for (register, address) in transfer.words() {
                    let value = queue.get(register).map_err(|fault| refused(at, fault))?;
                    self.write(at, address, &value.to_le_bytes())?;
                }
            }
            Effect::Sync(sync) => return self.sync(at, sync, *error),
            Effect::StoreState { address, state } => {
                let value = match state {
                    0 => self.environment.clock.timestamp(),
                    1 => self.environment.clock.cycles(),
                    _ => {
                        let text = format!("STORE_STATE {state} is not modelled");
                        return Err(fault(StreamStatus::CS_INVALID_INSTRUCTION, at, text));
                    }
                };
                self.write(at, address, &value.to_le_bytes())?;
            }
        }
        Ok(Happened::Nothing)
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
        let (payload, shaders) = asked(compute);
        let dispatch =
            compute::from_registers(environment.profile, &self.memory, at, &payload, &shaders);
        let cores = Cores {
            usable: environment.cores_ready,
            seed: environment.seed,
        };
        let (report, result) = match dispatch {
            Ok(mut dispatch) => {
                dispatch.grid.cores = cores;
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

    /// A sync object is a value of 32 or 64 bits, then 32 bits of error.
    pub(crate) fn sync(&self, at: u64, sync: Sync, error: u32) -> Result<Happened, StreamFault> {
        let size = if sync.wide { 8 } else { 4 };
        let mut bytes = [0; 8];
        let read = self.memory.read(sync.address, &mut bytes[..size]);
        read.map_err(|fault| unmapped(at, fault))?;
        let found = u64::from_le_bytes(bytes);
        let behind = sync.address.wrapping_add(size as u64);
        let value = match sync.kind {
            SyncKind::Add => found.wrapping_add(sync.value),
            SyncKind::Set => sync.value,
            SyncKind::Wait(condition) => {
                let error = self.memory.bytes(behind);
                let error = error.map_err(|fault| unmapped(at, fault))?;
                let error = u32::from_le_bytes(error);
                if sync.error && error != 0 {
                    let text = format!("the sync object has the error {error:#x}");
                    return Err(fault(StreamStatus::CS_INHERIT_FAULT, at, text));
                }
                return Ok(match condition.holds(found, sync.value) {
                    true => Happened::Nothing,
                    false => Happened::Blocked(sync),
                });
            }
        };
        if sync.error && error != 0 {
            self.write(at, behind, &error.to_le_bytes())?;
        }
        self.write(at, sync.address, &value.to_le_bytes()[..size])?;
        Ok(Happened::Changed)
    }

    fn write(&self, at: u64, address: u64, bytes: &[u8]) -> Result<(), StreamFault> {
        let written = self.memory.write(address, bytes);
        written.map_err(|fault| unmapped(at, fault))?;
        if let Some(observer) = &self.environment.observer {
            observer.wrote(address, bytes.len() as u64);
        }
        Ok(())
    }
}

pub(crate) fn asked(compute: &Compute) -> (ComputePayload, ShaderEnvironment) {
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
    of_registers(payload, pointers, compute.attribute_offset)
}

impl StreamFault {
    fn of(at: u64, fault: JobFault) -> StreamFault {
        StreamFault {
            status: StreamStatus(fault.status.0),
            at,
            refused: fault.mmu,
            text: fault.text,
        }
    }
}

fn unmapped(at: u64, fault: MmuFault) -> StreamFault {
    StreamFault::of(at, fault.into())
}

pub(super) fn fault(status: StreamStatus, at: u64, text: String) -> StreamFault {
    StreamFault {
        status,
        at,
        refused: None,
        text,
    }
}

pub(super) fn refused(at: u64, found: Fault) -> StreamFault {
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
