// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware's start: describes its interface.

use gpureplay_memory::Bus;
use gpureplay_shader::MmuFault;
use mali_facts::firmware::interface::{
    GLOBAL_INPUT, GLOBAL_OUTPUT, REQUEST, SECTION, STREAM_STRIDE, global, group, group_control,
    group_input, group_output, group_stride, stream, stream_control, stream_input, stream_output,
};
use mali_facts::firmware::registers::{GLOBAL_INTERFACE, Processor};

use super::{StreamDevice, saved};

/// 1.1.0.
const VERSION: u32 = 1 << 24 | 1 << 16;
/// Protected mode is not modelled, but drivers allocate its buffer.
const PROTECTED_SUSPEND_SIZE: u32 = 0x1000;

impl<B: Bus> StreamDevice<B> {
    pub(super) fn boot(&mut self) -> Result<(), MmuFault> {
        self.abandon_groups();
        let memory = self.memory();
        let (groups, streams) = (self.gpu.groups, self.gpu.streams);
        let put = |block: u32, words: &[(u32, u32)]| {
            words
                .iter()
                .try_for_each(|(offset, value)| memory.put(block + offset, *value))
        };
        for number in 0..groups {
            let block = [
                (group::INPUT, group_input(number)),
                (group::OUTPUT, group_output(number)),
                (group::SUSPEND_SIZE, saved::size(streams)),
                (group::PROTECTED_SUSPEND_SIZE, PROTECTED_SUSPEND_SIZE),
                (group::STREAMS, streams),
                (group::STREAM_STRIDE, STREAM_STRIDE),
            ];
            put(group_control(streams, number), &block)?;
            let units = 7 * stream::COMPUTES;
            let features = (self.gpu.registers - 1) | (self.gpu.scoreboards << 8) | units;
            for at in 0..streams {
                let block = [
                    (stream::FEATURES, features),
                    (stream::INPUT, stream_input(number, at)),
                    (stream::OUTPUT, stream_output(number, at)),
                ];
                put(stream_control(streams, number, at), &block)?;
            }
        }
        let block = [
            (global::INPUT, GLOBAL_INPUT),
            (global::OUTPUT, GLOBAL_OUTPUT),
            (global::GROUPS, groups),
            (global::GROUP_STRIDE, group_stride(streams)),
            (global::VERSION, VERSION),
        ];
        put(SECTION, &block)?;
        let acknowledged = memory.get(GLOBAL_OUTPUT + REQUEST)?;
        memory.put(GLOBAL_OUTPUT + REQUEST, acknowledged & !global::HALT)?;
        self.set_processor(Processor::Enabled);
        self.job_interrupts.raise(GLOBAL_INTERFACE);
        Ok(())
    }

    pub(super) fn halt(&mut self) -> Result<(), MmuFault> {
        self.abandon_groups();
        let memory = self.memory();
        memory.put(GLOBAL_OUTPUT + global::HALT_STATUS, 0)?;
        let acknowledged = memory.get(GLOBAL_OUTPUT + REQUEST)?;
        memory.put(GLOBAL_OUTPUT + REQUEST, acknowledged | global::HALT)?;
        self.set_processor(Processor::Halted);
        Ok(())
    }
}
