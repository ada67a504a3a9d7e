// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups and streams.

use std::sync::Arc;

use gpureplay_memory::Bus;
use gpureplay_shader::MmuFault;
use mali_facts::StreamStatus;
use mali_facts::firmware::interface::{
    GLOBAL_INPUT, REQUEST, global, group, group::State, group_input, group_output, stream,
    stream_input, stream_output,
};

use super::queue::Queue;
use super::{StreamDevice, saved};
use crate::environment::ChainControl;
use crate::log::log;

#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) started: bool,
    pub(super) rung: bool,
    /// Stands still until the driver rings.
    pub(super) faulted: bool,
    pub(super) running: Option<Arc<ChainControl>>,
    pub(super) queue: Queue,
    /// Cycle of the last advance.
    pub(super) progress: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) active: bool,
    pub(super) space: u32,
    /// The driver was told that it is idle.
    pub(super) idle: bool,
    /// To take when no stream runs.
    pub(super) pending: Option<State>,
    pub(super) streams: Vec<Stream>,
}

impl Group {
    pub(super) fn new(streams: u32) -> Group {
        Group {
            streams: (0..streams).map(|_| Stream::default()).collect(),
            ..Group::default()
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.streams.iter().any(|stream| stream.running.is_some())
    }

    pub(super) fn abort(&self) {
        let running = self.streams.iter().filter_map(|it| it.running.as_ref());
        running.for_each(|control| control.stop_now());
    }
}

impl<B: Bus> StreamDevice<B> {
    pub(super) fn ask_state(&mut self, number: u32, state: State) -> Result<(), MmuFault> {
        let Some(slot) = self.groups.get_mut(number as usize) else {
            return Ok(());
        };
        if !slot.is_running() {
            return self.take_state(number, state);
        }
        slot.pending = Some(state);
        match state {
            State::Terminated => slot.abort(),
            _ => {
                let running = slot.streams.iter().filter_map(|it| it.running.as_ref());
                running.for_each(|control| control.stop_after_job());
            }
        }
        Ok(())
    }

    pub(super) fn take_state(&mut self, number: u32, state: State) -> Result<(), MmuFault> {
        let memory = self.memory();
        let (input, output) = (group_input(number), group_output(number));
        let buffer = memory.get_wide((input + group::SUSPEND_BUFFER).into())?;
        log!(
            self.options.log,
            Info,
            "group {number}: {state:?}, address space {}",
            memory.get(input + group::CONFIG)? & 0xf
        );
        let Some(slot) = self.groups.get_mut(number as usize) else {
            return Ok(());
        };
        slot.pending = None;
        let place = |at: usize| buffer.wrapping_add(4 * (saved::WORDS * at) as u64);
        match state {
            State::Terminated => slot.active = false,
            State::Suspended => {
                for (at, stream) in slot.streams.iter().enumerate() {
                    if slot.active {
                        memory.write_words(place(at), &saved::words(&stream.queue))?;
                    }
                }
                slot.active = false;
            }
            State::Started | State::Resumed => {
                *slot = Group::new(self.gpu.streams);
                slot.active = true;
                slot.space = memory.get(input + group::CONFIG)? & 0xf;
                for (at, stream) in slot.streams.iter_mut().enumerate() {
                    if state == State::Resumed {
                        let mut words = [0; saved::WORDS];
                        memory.read_words(place(at), &mut words)?;
                        stream.queue = saved::queue(&words).unwrap_or(Queue {
                            failed: true,
                            ..Queue::default()
                        });
                    }
                }
                memory.put(output + group::STATE, 0)?;
            }
        }
        if slot.active {
            for at in 0..self.gpu.streams {
                self.start_stream(number, at, state)?;
            }
        }
        let acknowledged = memory.get(output + REQUEST)? & !group::STATE_MASK;
        memory.put(output + REQUEST, acknowledged | state as u32)?;
        self.acknowledged(number, group::STATE_MASK)?;
        self.settle(number)
    }

    fn start_stream(&mut self, number: u32, at: u32, state: State) -> Result<(), MmuFault> {
        let memory = self.memory();
        let output = stream_output(number, at);
        for offset in (0..stream::OUTPUT_SIZE).step_by(4) {
            memory.put(output + offset, 0)?;
        }
        let request = memory.get(stream_input(number, at) + REQUEST)?;
        memory.put(output + REQUEST, request)?;
        let now = self.clock.cycles();
        let Some(slot) = self.stream(number, at) else {
            return Ok(());
        };
        slot.started = request & stream::STATE_MASK == stream::STARTED;
        slot.progress = now;
        if slot.started && slot.queue.failed && state == State::Resumed {
            // The suspend buffer holds no stream, or one that cannot go on.
            let code = StreamStatus::FIRMWARE_INTERNAL_ERROR;
            memory.put(output + stream::FATAL, code.0)?;
            return self.stream_event(number, at, stream::FATAL_EVENT);
        }
        self.ring(number, at)
    }

    pub(super) fn ring(&mut self, number: u32, at: u32) -> Result<(), MmuFault> {
        let memory = self.memory();
        let active = self.groups.get(number as usize).is_some_and(|it| it.active);
        let Some(slot) = self.stream(number, at) else {
            return Ok(());
        };
        slot.faulted = false;
        if !active || !slot.started || slot.queue.failed {
            return Ok(());
        }
        let within = slot.queue.waiting.is_some() || slot.queue.sequencer.address().is_some();
        let input = stream_input(number, at);
        let position = |block: u32| {
            let block = memory.get_wide((input + block).into())?;
            memory.get_wide(block)
        };
        if within || position(stream::RING_INPUT)? != position(stream::RING_OUTPUT)? {
            slot.rung = true;
            return self.wake(number);
        }
        Ok(())
    }

    fn wake(&mut self, number: u32) -> Result<(), MmuFault> {
        self.idle = false;
        if let Some(slot) = self.groups.get_mut(number as usize) {
            slot.idle = false;
        }
        self.memory().put(group_output(number) + group::STATE, 0)
    }

    pub(super) fn ring_waiting(&mut self) -> Result<(), MmuFault> {
        for number in 0..self.gpu.groups {
            for at in 0..self.gpu.streams {
                let waits = self.stream(number, at).is_some_and(|stream| {
                    stream.running.is_some() || stream.queue.waiting.is_some()
                });
                if waits {
                    self.ring(number, at)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn stream(&mut self, number: u32, at: u32) -> Option<&mut Stream> {
        let group = self.groups.get_mut(number as usize)?;
        group.streams.get_mut(at as usize)
    }

    /// Tells the driver when the group, or all, get idle.
    pub(super) fn settle(&mut self, number: u32) -> Result<(), MmuFault> {
        let memory = self.memory();
        let Some(slot) = self.groups.get(number as usize) else {
            return Ok(());
        };
        let mut busy = slot.pending.is_some();
        for (at, it) in (0..).zip(&slot.streams) {
            let request = memory.get(stream_input(number, at) + REQUEST)?;
            let waits = it.queue.waiting.is_some() && request & stream::IDLE_WAITING == 0;
            busy |= it.started && (it.running.is_some() || it.rung || it.faulted || waits);
        }
        if slot.active && !busy && !slot.idle {
            if let Some(slot) = self.groups.get_mut(number as usize) {
                slot.idle = true;
            }
            memory.put(group_output(number) + group::STATE, 1)?;
            self.group_event(number, group::IDLE)?;
        }
        let all = self.groups.iter().all(|group| !group.active || group.idle);
        let enabled = memory.get(GLOBAL_INPUT + REQUEST)? & global::IDLE_ENABLE != 0;
        if all && enabled && !self.idle {
            self.idle = true;
            self.global_event(global::IDLE)?;
        }
        Ok(())
    }
}
