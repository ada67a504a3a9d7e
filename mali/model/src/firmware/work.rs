// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pieces of streams: up to a call or a wait.

use std::sync::Arc;

use gpureplay_memory::Bus;
use gpureplay_shader::MmuFault;
use mali_facts::StreamStatus;
use mali_facts::firmware::interface::{
    GLOBAL_INPUT, global, group, group_input, stream, stream_input,
};
use mali_isa::valhall::streams::{Op, Sync};

use super::StreamDevice;
use super::memory::Memory;
use super::queue::Queue;
use crate::environment::{ChainControl, Environment, RUN};
use crate::log::log;
use crate::streams::{Happened, Runner, StreamFault};

const MOST_INSTRUCTIONS: u32 = 1 << 16;
const WORD: u64 = 8;

#[derive(Default)]
struct Done {
    advanced: bool,
    changed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ring {
    base: u64,
    size: u64,
    input: u64,
    output: u64,
}

/// Piece of a stream to run.
pub struct StreamWork<B: Bus> {
    environment: Environment<B>,
    memory: Memory<B>,
    ring: Ring,
    queue: Queue,
    group: u32,
    stream: u32,
    epoch: u64,
}

#[derive(Debug)]
pub(super) enum End {
    Empty,
    /// Before a call, or after a sync object's change: the driver is told between jobs.
    Turn,
    Blocked(Sync),
    Cut,
    Stopped,
    /// The stream can go on.
    Fault(StreamFault),
    Fatal(StreamFault),
    /// The firmware's memory is not mapped.
    Lost(MmuFault),
}

/// Result for [`StreamDevice::finish`].
#[derive(Debug)]
#[must_use = "the stream stays busy until the work is finished"]
pub struct StreamFinished {
    pub(super) group: u32,
    pub(super) stream: u32,
    pub(super) queue: Queue,
    pub(super) end: End,
    pub(super) advanced: bool,
    pub(super) changed: bool,
    pub(super) epoch: u64,
}

impl StreamFinished {
    /// The stream goes on without a report.
    pub fn is_cut(&self) -> bool {
        matches!(self.end, End::Cut)
    }
}

impl<B: Bus> StreamDevice<B> {
    /// Whether a stream waits.
    pub fn has_work(&self) -> bool {
        self.next().is_some()
    }

    fn next(&self) -> Option<(u32, u32)> {
        let groups = (0..).zip(&self.groups);
        let groups = groups.filter(|(_, group)| group.active && group.pending.is_none());
        let mut streams = groups.flat_map(|(number, group)| {
            let streams = (0..).zip(&group.streams);
            streams.map(move |(at, stream)| ((number, at), stream))
        });
        let ready = streams.find(|(_, stream)| {
            let able = stream.started && !stream.faulted && !stream.queue.failed;
            able && stream.rung && stream.running.is_none()
        });
        ready.map(|(place, _)| place)
    }

    /// Takes a piece, for another thread.
    pub fn take_work(&mut self) -> Option<StreamWork<B>> {
        loop {
            let (number, at) = self.next()?;
            match self.prepare(number, at) {
                Ok(work) => return work,
                Err(fault) => self.attempt(|_| Err(fault)),
            }
        }
    }

    fn prepare(&mut self, number: u32, at: u32) -> Result<Option<StreamWork<B>>, MmuFault> {
        let memory = self.memory();
        let of_group = group_input(number);
        let input = stream_input(number, at);
        let wide = |address: u32| memory.get_wide(address.into());
        let ring = Ring {
            base: wide(input + stream::RING)?,
            size: memory.get(input + stream::RING_SIZE)?.into(),
            input: wide(input + stream::RING_INPUT)?,
            output: wide(input + stream::RING_OUTPUT)?,
        };
        let allowed = wide(GLOBAL_INPUT + global::CORES)? & wide(of_group + group::CORES)?;
        let most = memory.get(of_group + group::ENDPOINTS)? & 0xff;
        let mut cores = 0_u64;
        for core in 0..64 {
            let bit = self.gpu.profile.shader_present & allowed & 1 << core;
            if cores.count_ones() < most {
                cores |= bit;
            }
        }
        let budget = self.options.clause_budget;
        let control = Arc::new(ChainControl::new(budget, self.work.clone()));
        let space = self.groups.get(number as usize).map(|group| group.space);
        let space = space.and_then(|space| self.spaces.get(space as usize));
        let space = space.map(|space| space.space().clone());
        let environment = Environment {
            profile: &self.gpu.profile,
            bus: self.bus.clone(),
            space: space.unwrap_or_default(),
            threads: self.threads.clone(),
            control: control.clone(),
            clock: self.clock,
            log: self.options.log.clone(),
            observer: self.options.observer.clone(),
            notify: None,
            seed: self.options.seed,
            cores_ready: cores,
            l2_ready: true,
        };
        let epoch = self.epoch;
        let Some(slot) = self.stream(number, at) else {
            return Ok(None);
        };
        slot.rung = false;
        slot.running = Some(control);
        let queue = std::mem::take(&mut slot.queue);
        self.outstanding += 1;
        log!(
            self.options.log,
            Debug,
            "stream {number}.{at} runs, ring {:#x}, cores {cores:#x}",
            ring.base
        );
        Ok(Some(StreamWork {
            environment,
            memory,
            ring,
            queue,
            group: number,
            stream: at,
            epoch,
        }))
    }
}

impl<B: Bus> StreamWork<B> {
    /// Runs until there is a report.
    pub fn execute(mut self) -> StreamFinished {
        let mut queue = std::mem::take(&mut self.queue);
        let mut done = Done::default();
        let end = self.run(&mut queue, &mut done);
        let end = match end {
            Ok(end) => end,
            Err(fault) => {
                queue.error = fault.status.0;
                let fatal = fault.refused.is_some() || !can_go_on(fault.status);
                queue.failed = fatal;
                match fatal {
                    true => End::Fatal(fault),
                    false => End::Fault(fault),
                }
            }
        };
        StreamFinished {
            group: self.group,
            stream: self.stream,
            queue,
            end,
            advanced: done.advanced,
            changed: done.changed,
            epoch: self.epoch,
        }
    }

    fn run(&self, queue: &mut Queue, done: &mut Done) -> Result<End, StreamFault> {
        let runner = Runner::new(&self.environment);
        if let Some(sync) = queue.waiting {
            let at = queue.sequencer.address().unwrap_or(0);
            if let Happened::Blocked(sync) = runner.sync(at, sync, queue.error)? {
                return Ok(End::Blocked(sync));
            }
            queue.waiting = None;
        }
        for _ in 0..MOST_INSTRUCTIONS {
            if self.environment.control.request() != RUN {
                return Ok(End::Stopped);
            }
            let (address, position) = match queue.sequencer.address() {
                Some(address) => (address, None),
                None => match self.position() {
                    Ok(None) => return Ok(End::Empty),
                    Ok(Some(position)) => {
                        let at = self.ring.base.wrapping_add(self.within(position)?);
                        (at, Some(position))
                    }
                    Err(fault) => return Ok(End::Lost(fault)),
                },
            };
            let word = runner.fetch(address, address);
            let calls = |word: &u64| word >> 56 == u64::from(Op::Call.row().opcode);
            if done.changed && position.is_some() && word.as_ref().is_ok_and(calls) {
                return Ok(End::Turn);
            }
            let sequencer = &mut queue.sequencer;
            let step =
                word.and_then(|word| runner.step(sequencer, address, word, &mut queue.error));
            if let Some(position) = position {
                done.advanced = true;
                let next = position.wrapping_add(WORD);
                if let Err(fault) = self.memory.put_wide(self.ring.output, next) {
                    return Ok(End::Lost(fault));
                }
            }
            match step? {
                Happened::Nothing => {}
                Happened::Changed => done.changed = true,
                Happened::Blocked(sync) => {
                    queue.waiting = Some(sync);
                    return Ok(End::Blocked(sync));
                }
            }
        }
        Ok(End::Cut)
    }

    fn position(&self) -> Result<Option<u64>, MmuFault> {
        let end = self.memory.get_wide(self.ring.input)?;
        let position = self.memory.get_wide(self.ring.output)?;
        Ok((position != end).then_some(position))
    }

    fn within(&self, position: u64) -> Result<u64, StreamFault> {
        let Ring { base, size, .. } = self.ring;
        if size.is_power_of_two() && size >= WORD && (base | position).is_multiple_of(WORD) {
            return Ok(position & (size - 1));
        }
        Err(StreamFault {
            status: StreamStatus::CS_CONFIG_FAULT,
            at: base,
            refused: None,
            text: format!("a ring of {size:#x} bytes at {base:#x}, position {position:#x}"),
        })
    }
}

/// After shaders' faults, sync objects' errors, limits.
fn can_go_on(status: StreamStatus) -> bool {
    let code = status.0 & 0xff;
    matches!(code, 0x50..=0x5b)
        || [StreamStatus::CS_RES_TERM, StreamStatus::CS_INHERIT_FAULT].contains(&StreamStatus(code))
}
