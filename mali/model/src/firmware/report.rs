// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the driver of a piece.

use gpureplay_memory::Bus;
use gpureplay_shader::MmuFault;
use mali_facts::StreamStatus;
use mali_facts::firmware::interface::{GLOBAL_INPUT, global, group, stream, stream_output};
use mali_isa::valhall::streams::{Condition, Sync, SyncKind};

use super::StreamDevice;
use super::work::{End, StreamFinished};
use crate::log::log;
use crate::streams::StreamFault;

impl<B: Bus> StreamDevice<B> {
    /// Takes a piece back: updates interface and interrupts.
    pub fn finish(&mut self, finished: StreamFinished) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if finished.epoch == self.epoch {
            self.attempt(|device| device.retire(finished));
        }
        self.complete_reset();
    }

    fn retire(&mut self, finished: StreamFinished) -> Result<(), MmuFault> {
        let (number, at) = (finished.group, finished.stream);
        self.flush_id = self.flush_id.wrapping_add(1);
        let now = self.clock.cycles();
        let Some(slot) = self.stream(number, at) else {
            return Ok(());
        };
        slot.running = None;
        slot.queue = finished.queue;
        if finished.advanced {
            slot.progress = now;
        }
        let since = now - slot.progress;
        match finished.end {
            End::Turn | End::Cut | End::Stopped => slot.rung = true,
            End::Fault(_) => slot.faulted = true,
            _ => {}
        }
        self.show_wait(
            number,
            at,
            match &finished.end {
                End::Blocked(sync) => Some(sync),
                _ => None,
            },
        )?;
        if finished.changed {
            self.group_event(number, group::SYNC_UPDATE)?;
            self.ring_waiting()?;
        }
        match finished.end {
            End::Cut => {
                let limit = self.memory().get(GLOBAL_INPUT + global::PROGRESS_TIMER)?;
                if limit != 0 && since > u64::from(limit) << 10 {
                    self.group_event(number, group::NO_PROGRESS)?;
                }
            }
            End::Fault(fault) => {
                let words = [stream::FAULT, stream::FAULT_INFO, stream::FAULT_EVENT];
                self.show_fault(number, at, &fault, words)?;
            }
            End::Fatal(fault) => {
                let words = [stream::FATAL, stream::FATAL_INFO, stream::FATAL_EVENT];
                self.show_fault(number, at, &fault, words)?;
            }
            End::Lost(fault) => return Err(fault),
            End::Empty | End::Turn | End::Blocked(_) | End::Stopped => {}
        }
        let slot = self.groups.get(number as usize);
        let slot = slot.filter(|slot| !slot.is_running());
        match slot.and_then(|slot| slot.pending) {
            Some(state) => self.take_state(number, state),
            None => self.settle(number),
        }
    }

    fn show_wait(&mut self, number: u32, at: u32, sync: Option<&Sync>) -> Result<(), MmuFault> {
        let memory = self.memory();
        let output = stream_output(number, at);
        let Some(sync) = sync else {
            memory.put(output + stream::WAIT, 0)?;
            return memory.put(output + stream::BLOCKED, 0);
        };
        let mut wait = stream::WAIT_SYNC;
        if sync.wide {
            wait |= stream::WAIT_WIDE;
        }
        if sync.kind == SyncKind::Wait(Condition::Greater) {
            wait |= stream::WAIT_GREATER;
        }
        memory.put(output + stream::WAIT, wait)?;
        memory.put_wide((output + stream::WAIT_ADDRESS).into(), sync.address)?;
        memory.put(output + stream::WAIT_VALUE, sync.value as u32)?;
        memory.put(output + stream::WAIT_VALUE_HIGH, (sync.value >> 32) as u32)?;
        memory.put(output + stream::SCOREBOARDS, 0)?;
        memory.put(output + stream::BLOCKED, stream::BLOCKED_SYNC)
    }

    fn show_fault(
        &mut self,
        number: u32,
        at: u32,
        fault: &StreamFault,
        [code, info, event]: [u32; 3],
    ) -> Result<(), MmuFault> {
        log!(self.options.log, Error, "stream {number}.{at}: {fault}");
        let memory = self.memory();
        let output = stream_output(number, at);
        let status = match &fault.refused {
            Some(refused) => {
                let space = self.groups.get(number as usize).map_or(0, |it| it.space);
                self.report_fault(space, refused);
                StreamStatus::CS_BUS_FAULT
            }
            None => fault.status,
        };
        memory.put_wide((output + stream::COMMAND).into(), fault.at)?;
        memory.put(output + code, status.0)?;
        let place = fault.refused.map_or(fault.at, |refused| refused.va);
        memory.put_wide((output + info).into(), place)?;
        self.stream_event(number, at, event)
    }
}
