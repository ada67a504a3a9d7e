// SPDX-License-Identifier: MIT OR Apache-2.0
//! Doorbells: requests, answers and events.

use gpureplay_memory::Bus;
use gpureplay_shader::MmuFault;
use mali_facts::firmware::interface::{
    GLOBAL_INPUT, GLOBAL_OUTPUT, REQUEST, global, group, group::State, group_input, group_output,
    stream, stream_input, stream_output,
};
use mali_facts::firmware::registers::GLOBAL_INTERFACE;

use super::StreamDevice;
use crate::log::log;

fn bits(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |bit| mask >> bit & 1 != 0)
}

impl<B: Bus> StreamDevice<B> {
    pub(super) fn global_doorbell(&mut self) -> Result<(), MmuFault> {
        let memory = self.memory();
        let request = memory.get(GLOBAL_INPUT + REQUEST)?;
        let acknowledged = memory.get(GLOBAL_OUTPUT + REQUEST)?;
        if request & !acknowledged & global::HALT != 0 {
            return self.halt();
        }
        let changed = (request ^ acknowledged) & global::REQUESTS;
        if changed != 0 {
            log!(self.options.log, Debug, "global requests {changed:#x}");
            memory.put(GLOBAL_OUTPUT + REQUEST, acknowledged ^ changed)?;
            self.global_interrupt(changed)?;
        }
        let rung = memory.get(GLOBAL_INPUT + global::DOORBELLS)?;
        let seen = memory.get(GLOBAL_OUTPUT + global::DOORBELLS)?;
        memory.put(GLOBAL_OUTPUT + global::DOORBELLS, rung)?;
        let groups = bits(rung ^ seen).filter(|number| *number < self.gpu.groups);
        for number in groups.collect::<Vec<_>>() {
            self.group_doorbell(number)?;
        }
        Ok(())
    }

    fn group_doorbell(&mut self, number: u32) -> Result<(), MmuFault> {
        let memory = self.memory();
        let (input, output) = (group_input(number), group_output(number));
        let request = memory.get(input + REQUEST)?;
        let acknowledged = memory.get(output + REQUEST)?;
        let changed = (request ^ acknowledged)
            & (group::STATE_MASK | group::CONFIGURE_ENDPOINTS | group::UPDATE_STATUS);
        if changed & group::CONFIGURE_ENDPOINTS != 0 {
            let endpoints = memory.get(input + group::ENDPOINTS)?;
            memory.put(output + group::ENDPOINTS_NOW, endpoints)?;
            memory.put(output + group::ENDPOINTS_ASKED, endpoints)?;
        }
        // An update of the status needs no work: its words are always up to date.
        let done = changed & !group::STATE_MASK;
        if done != 0 {
            memory.put(output + REQUEST, acknowledged ^ done)?;
            self.acknowledged(number, done)?;
        }
        if changed & group::STATE_MASK != 0 {
            match State::from_bits(request) {
                Some(state) => self.ask_state(number, state)?,
                None => log!(
                    self.options.log,
                    Warning,
                    "group {number}: no state has the number {}",
                    request & group::STATE_MASK
                ),
            }
        }
        let rung = memory.get(input + group::DOORBELLS)?;
        let seen = memory.get(output + group::DOORBELLS)?;
        memory.put(output + group::DOORBELLS, rung)?;
        for at in bits(rung ^ seen)
            .filter(|at| *at < self.gpu.streams)
            .collect::<Vec<_>>()
        {
            self.stream_doorbell(number, at)?;
        }
        self.settle(number)
    }

    fn stream_doorbell(&mut self, number: u32, at: u32) -> Result<(), MmuFault> {
        let memory = self.memory();
        let request = memory.get(stream_input(number, at) + REQUEST)?;
        let output = stream_output(number, at) + REQUEST;
        let events = stream::FATAL_EVENT | stream::FAULT_EVENT;
        let acknowledged = memory.get(output)?;
        memory.put(output, request & !events | acknowledged & events)?;
        let started = request & stream::STATE_MASK == stream::STARTED;
        if let Some(slot) = self.stream(number, at) {
            slot.started = started;
            if let (false, Some(control)) = (started, &slot.running) {
                control.stop_after_job();
            }
        }
        self.ring(number, at)
    }

    pub(super) fn doorbell(&mut self, doorbell: u32) -> Result<(), MmuFault> {
        let memory = self.memory();
        for number in 0..self.gpu.groups {
            if !self.groups.get(number as usize).is_some_and(|it| it.active) {
                continue;
            }
            for at in 0..self.gpu.streams {
                let config = memory.get(stream_input(number, at) + stream::CONFIG)?;
                if config >> 8 & 0xff == doorbell {
                    self.ring(number, at)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn acknowledged(&mut self, number: u32, bits: u32) -> Result<(), MmuFault> {
        let wanted = self.memory().get(group_input(number) + group::INTERRUPTS)?;
        if wanted & bits != 0 {
            self.job_interrupts.raise(1 << number);
        }
        Ok(())
    }

    fn global_interrupt(&mut self, bits: u32) -> Result<(), MmuFault> {
        if self.memory().get(GLOBAL_INPUT + global::INTERRUPTS)? & bits != 0 {
            self.job_interrupts.raise(GLOBAL_INTERFACE);
        }
        Ok(())
    }

    /// The acknowledged bit differs from the request's until the driver makes them equal.
    fn set_event(&self, input: u32, output: u32, bit: u32) -> Result<(), MmuFault> {
        let memory = self.memory();
        let request = memory.get(input)?;
        let acknowledged = memory.get(output)?;
        memory.put(output, acknowledged & !bit | !request & bit)
    }

    pub(super) fn global_event(&mut self, bit: u32) -> Result<(), MmuFault> {
        self.set_event(GLOBAL_INPUT + REQUEST, GLOBAL_OUTPUT + REQUEST, bit)?;
        self.global_interrupt(bit)
    }

    pub(super) fn group_event(&mut self, number: u32, bit: u32) -> Result<(), MmuFault> {
        let (input, output) = (group_input(number), group_output(number));
        self.set_event(input + REQUEST, output + REQUEST, bit)?;
        self.acknowledged(number, bit)
    }

    pub(super) fn stream_event(&mut self, number: u32, at: u32, bit: u32) -> Result<(), MmuFault> {
        let (input, output) = (stream_input(number, at), stream_output(number, at));
        self.set_event(input + REQUEST, output + REQUEST, bit)?;
        let events = group::STREAM_EVENTS;
        let (of_input, of_output) = (group_input(number) + events, group_output(number) + events);
        self.set_event(of_input, of_output, 1 << at)?;
        if self.memory().get(input + stream::INTERRUPTS)? & bit != 0 {
            self.job_interrupts.raise(1 << number);
        }
        Ok(())
    }
}
