// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks of memory between driver and firmware: a control block that the firmware fills, an input that the driver writes, an output that
//! the firmware writes; for all groups together, for each group and for each of its streams. Addresses are the firmware's own.
//!
//! A request is a bit of an input that differs from the acknowledge bit of the output. The places of the control blocks are fixed; where
//! inputs and outputs are the control blocks say.

/// Where the section with all blocks begins; the global control block is its first.
pub const SECTION: u32 = 0x0400_0000;
/// Bytes of the section: control blocks, the global input and output, two pages for each group.
pub const SECTION_SIZE: u32 = 0x4000 + GROUP_PAGES * 8;

/// Control block of the first group.
const GROUP_CONTROLS: u32 = SECTION + 0x1000;
/// Bytes of a group's control block, in front of those of its streams.
const STREAM_CONTROLS: u32 = 0x40;
/// Bytes from a stream's control block to the next.
pub const STREAM_STRIDE: u32 = 12;
/// Where the global input is.
pub const GLOBAL_INPUT: u32 = SECTION + 0x2000;
/// Where the global output is.
pub const GLOBAL_OUTPUT: u32 = SECTION + 0x3000;
/// Bytes of the inputs and outputs of a group with its streams.
const GROUP_PAGES: u32 = 0x2000;

/// Bytes from a group's control block to the next, with so many streams.
pub const fn group_stride(streams: u32) -> u32 {
    STREAM_CONTROLS + STREAM_STRIDE * streams
}

/// Control block of a group.
pub const fn group_control(streams: u32, group: u32) -> u32 {
    GROUP_CONTROLS + group_stride(streams) * group
}

/// Control block of a stream.
pub const fn stream_control(streams: u32, group: u32, stream: u32) -> u32 {
    group_control(streams, group) + STREAM_CONTROLS + STREAM_STRIDE * stream
}

/// Input of a group.
pub const fn group_input(group: u32) -> u32 {
    SECTION + 0x4000 + GROUP_PAGES * group
}

/// Output of a group.
pub const fn group_output(group: u32) -> u32 {
    group_input(group) + 0x1000
}

/// Input of a stream.
pub const fn stream_input(group: u32, stream: u32) -> u32 {
    group_input(group) + 0x80 * (stream + 1)
}

/// Output of a stream.
pub const fn stream_output(group: u32, stream: u32) -> u32 {
    group_output(group) + 0x100 * (stream + 1)
}

/// First word of each input and of each output: requests, and what is acknowledged of them.
pub const REQUEST: u32 = 0;

/// The global blocks.
pub mod global {
    /// Control: version of the interface, major in 31:24, minor in 23:16.
    pub const VERSION: u32 = 0x00;
    /// Control: address of the input.
    pub const INPUT: u32 = 0x08;
    /// Control: address of the output.
    pub const OUTPUT: u32 = 0x0c;
    /// Control: number of groups.
    pub const GROUPS: u32 = 0x10;
    /// Control: bytes from a group's control block to the next.
    pub const GROUP_STRIDE: u32 = 0x14;

    /// Input: acknowledgements that raise the interrupt.
    pub const INTERRUPTS: u32 = 0x04;
    /// Input and output: doorbells of groups, rung where they differ.
    pub const DOORBELLS: u32 = 0x08;
    /// Input: cycles, in units of 1024, without progress after which a group is reported.
    pub const PROGRESS_TIMER: u32 = 0x10;
    /// Input: shader cores that may be used, 64 bits.
    pub const CORES: u32 = 0x18;
    /// Output: why the firmware has halted; 0: it was asked to.
    pub const HALT_STATUS: u32 = 0x10;

    /// Request: halt.
    pub const HALT: u32 = 1;
    /// Request: take the set of cores.
    pub const CONFIGURE_CORES: u32 = 1 << 2;
    /// Request: say when all groups are idle.
    pub const IDLE_ENABLE: u32 = 1 << 10;
    /// Event: all groups are idle.
    pub const IDLE: u32 = 1 << 26;
    /// All requests of the driver but [`HALT`]: each is a bit that the firmware copies when it has done what it asks for.
    pub const REQUESTS: u32 = 0x17fe;
}

/// The blocks of a group.
pub mod group {
    /// Control: address of the input.
    pub const INPUT: u32 = 0x04;
    /// Control: address of the output.
    pub const OUTPUT: u32 = 0x08;
    /// Control: bytes of the buffer for a suspended group.
    pub const SUSPEND_SIZE: u32 = 0x0c;
    /// Control: the same in protected mode.
    pub const PROTECTED_SUSPEND_SIZE: u32 = 0x10;
    /// Control: number of streams.
    pub const STREAMS: u32 = 0x14;
    /// Control: bytes from a stream's control block to the next.
    pub const STREAM_STRIDE: u32 = 0x18;

    /// Input: acknowledgements that raise the interrupt.
    pub const INTERRUPTS: u32 = 0x04;
    /// Input and output: doorbells of streams, rung where they differ.
    pub const DOORBELLS: u32 = 0x08;
    /// Input and output: streams with an event, where they differ.
    pub const STREAM_EVENTS: u32 = 0x0c;
    /// Input: cores that may compute, 64 bits.
    pub const CORES: u32 = 0x20;
    /// Input: how many cores, and the priority.
    pub const ENDPOINTS: u32 = 0x34;
    /// Input: address of the buffer for the suspended group, 64 bits.
    pub const SUSPEND_BUFFER: u32 = 0x40;
    /// Input: the address space.
    pub const CONFIG: u32 = 0x50;
    /// Output: endpoints that the group has.
    pub const ENDPOINTS_NOW: u32 = 0x10;
    /// Output: endpoints that it asked for.
    pub const ENDPOINTS_ASKED: u32 = 0x14;
    /// Output: bit 0, the group is idle.
    pub const STATE: u32 = 0x18;

    /// Request: the state, a number in these bits.
    pub const STATE_MASK: u32 = 7;
    /// Request: take the endpoints.
    pub const CONFIGURE_ENDPOINTS: u32 = 1 << 4;
    /// Request: bring the status words up to date.
    pub const UPDATE_STATUS: u32 = 1 << 5;
    /// Event: a sync object changed.
    pub const SYNC_UPDATE: u32 = 1 << 28;
    /// Event: no stream of the group has work.
    pub const IDLE: u32 = 1 << 29;
    /// Event: no progress for longer than the timer allows.
    pub const NO_PROGRESS: u32 = 1 << 31;

    /// States of a group.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(u32)]
    pub enum State {
        /// It has no streams that run, and its slot is free.
        #[default]
        Terminated = 0,
        /// New streams run.
        Started = 1,
        /// Its streams lie in the suspend buffer.
        Suspended = 2,
        /// Streams from the suspend buffer run.
        Resumed = 3,
    }

    impl State {
        /// The state in a request or an acknowledgement.
        pub const fn from_bits(word: u32) -> Option<State> {
            match word & STATE_MASK {
                0 => Some(State::Terminated),
                1 => Some(State::Started),
                2 => Some(State::Suspended),
                3 => Some(State::Resumed),
                _ => None,
            }
        }
    }
}

/// The blocks of a stream.
pub mod stream {
    /// Control: registers minus 1 in 7:0, scoreboards in 15:8, units.
    pub const FEATURES: u32 = 0x00;
    /// Control: address of the input.
    pub const INPUT: u32 = 0x04;
    /// Control: address of the output.
    pub const OUTPUT: u32 = 0x08;
    /// Feature: it computes. The next two bits: it shades fragments, it tiles.
    pub const COMPUTES: u32 = 1 << 16;

    /// Input: doorbell in 15:8.
    pub const CONFIG: u32 = 0x04;
    /// Input: events that raise the interrupt.
    pub const INTERRUPTS: u32 = 0x0c;
    /// Input: address of the ring in the group's space, 64 bits.
    pub const RING: u32 = 0x10;
    /// Input: bytes of the ring, a power of two.
    pub const RING_SIZE: u32 = 0x18;
    /// Input: address of the ring's input, 64 bits; the driver's position is its first.
    pub const RING_INPUT: u32 = 0x30;
    /// Input: address of the ring's output, 64 bits; the firmware's position is its first.
    pub const RING_OUTPUT: u32 = 0x38;
    /// Output: address of the instruction, 64 bits.
    pub const COMMAND: u32 = 0x40;
    /// Output: what is waited for.
    pub const WAIT: u32 = 0x48;
    /// Output: address of the sync object that is waited for, 64 bits.
    pub const WAIT_ADDRESS: u32 = 0x50;
    /// Output: the value that is waited for, low word.
    pub const WAIT_VALUE: u32 = 0x58;
    /// Output: scoreboards in use.
    pub const SCOREBOARDS: u32 = 0x5c;
    /// Output: why the stream stands still; 3: it waits for a sync object.
    pub const BLOCKED: u32 = 0x60;
    /// Output: the value that is waited for, high word.
    pub const WAIT_VALUE_HIGH: u32 = 0x64;
    /// Output: code of a fault after which the stream can go on.
    pub const FAULT: u32 = 0x80;
    /// Output: code of a fault after which it cannot.
    pub const FATAL: u32 = 0x84;
    /// Output: more about the fault, 64 bits.
    pub const FAULT_INFO: u32 = 0x88;
    /// Output: more about the fatal one, 64 bits.
    pub const FATAL_INFO: u32 = 0x90;
    /// Bytes of an output.
    pub const OUTPUT_SIZE: u32 = 0xd8;

    /// Request: the state, a number in these bits; 1: run.
    pub const STATE_MASK: u32 = 7;
    /// State of a stream that runs.
    pub const STARTED: u32 = 1;
    /// Request: a stream that waits for a sync object counts as idle.
    pub const IDLE_WAITING: u32 = 1 << 8;
    /// Event: a fault after which the stream cannot go on.
    pub const FATAL_EVENT: u32 = 1 << 30;
    /// Event: a fault after which it can.
    pub const FAULT_EVENT: u32 = 1 << 31;
    /// [`WAIT`]: for a sync object.
    pub const WAIT_SYNC: u32 = 1 << 31;
    /// [`WAIT`]: it has 64 bits.
    pub const WAIT_WIDE: u32 = 1 << 30;
    /// [`WAIT`]: until it is greater; else until it is at most the value.
    pub const WAIT_GREATER: u32 = 1 << 24;
    /// [`BLOCKED`]: it waits for a sync object.
    pub const BLOCKED_SYNC: u32 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STREAM_GPUS;

    #[test]
    fn blocks_fit_without_overlap() {
        for gpu in STREAM_GPUS {
            let (groups, streams) = (gpu.groups, gpu.streams);
            assert!(group_control(streams, groups) <= GLOBAL_INPUT);
            assert!(stream_input(0, streams) <= group_output(0));
            assert!(stream_output(0, streams) <= group_input(1));
            assert!(group_input(groups) <= SECTION + SECTION_SIZE);
            assert!(stream::OUTPUT_SIZE <= stream_output(0, 1) - stream_output(0, 0));
            assert_eq!(
                stream_control(streams, 0, streams),
                group_control(streams, 1)
            );
        }
    }
}
