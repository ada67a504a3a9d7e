// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of driver and firmware: control blocks and outputs by the firmware, inputs by the driver; global, per
//! group, per stream. Addresses are the firmware's.
//!
//! A request is an input bit unlike the output's acknowledge bit. Control blocks have fixed places, and say where
//! inputs and outputs are.

/// Address of the section, and of the global control block in it.
pub const SECTION: u32 = 0x0400_0000;
/// Control blocks, global input and output, two pages per group.
pub const SECTION_SIZE: u32 = 0x4000 + GROUP_PAGES * 8;

const FIRST_GROUP_CONTROL: u32 = SECTION + 0x1000;
const GROUP_CONTROL_BYTES: u32 = 0x40;
/// Bytes between streams' control blocks.
pub const STREAM_STRIDE: u32 = 12;
/// Global input.
pub const GLOBAL_INPUT: u32 = SECTION + 0x2000;
/// Global output.
pub const GLOBAL_OUTPUT: u32 = SECTION + 0x3000;
const GROUP_PAGES: u32 = 0x2000;

/// Bytes between groups' control blocks.
pub const fn group_stride(streams: u32) -> u32 {
    GROUP_CONTROL_BYTES + STREAM_STRIDE * streams
}

/// Control block of a group.
pub const fn group_control(streams: u32, group: u32) -> u32 {
    FIRST_GROUP_CONTROL + group_stride(streams) * group
}

/// Control block of a stream.
pub const fn stream_control(streams: u32, group: u32, stream: u32) -> u32 {
    group_control(streams, group) + GROUP_CONTROL_BYTES + STREAM_STRIDE * stream
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

/// First word: requests, acknowledgements.
pub const REQUEST: u32 = 0;

/// The global blocks.
pub mod global {
    /// Control: major 31:24, minor 23:16.
    pub const VERSION: u32 = 0x00;
    /// Control: address of the input.
    pub const INPUT: u32 = 0x08;
    /// Control: address of the output.
    pub const OUTPUT: u32 = 0x0c;
    /// Control: number of groups.
    pub const GROUPS: u32 = 0x10;
    /// Control: bytes between groups.
    pub const GROUP_STRIDE: u32 = 0x14;

    /// Input: interrupting acknowledgements.
    pub const INTERRUPTS: u32 = 0x04;
    /// Input, output: groups' doorbells, rung where different.
    pub const DOORBELLS: u32 = 0x08;
    /// Input: cycles without progress until a report, in units of 1024.
    pub const PROGRESS_TIMER: u32 = 0x10;
    /// Input: usable cores, 64 bits.
    pub const CORES: u32 = 0x18;
    /// Output: reason; 0 on request.
    pub const HALT_STATUS: u32 = 0x10;

    /// Request: halt.
    pub const HALT: u32 = 1;
    /// Request: use cores.
    pub const CONFIGURE_CORES: u32 = 1 << 2;
    /// Request: report idleness.
    pub const IDLE_ENABLE: u32 = 1 << 10;
    /// Event: all groups are idle.
    pub const IDLE: u32 = 1 << 26;
    /// All but [`HALT`]; the firmware copies a bit when done.
    pub const REQUESTS: u32 = 0x17fe;
}

/// The blocks of a group.
pub mod group {
    /// Control: address of the input.
    pub const INPUT: u32 = 0x04;
    /// Control: address of the output.
    pub const OUTPUT: u32 = 0x08;
    /// Control: suspend buffer's bytes.
    pub const SUSPEND_SIZE: u32 = 0x0c;
    /// Control: suspend buffer's bytes in protected mode.
    pub const PROTECTED_SUSPEND_SIZE: u32 = 0x10;
    /// Control: number of streams.
    pub const STREAMS: u32 = 0x14;
    /// Control: bytes between streams.
    pub const STREAM_STRIDE: u32 = 0x18;

    /// Input: interrupting acknowledgements.
    pub const INTERRUPTS: u32 = 0x04;
    /// Input, output: streams' doorbells, rung where different.
    pub const DOORBELLS: u32 = 0x08;
    /// Input, output: streams with an event, where different.
    pub const STREAM_EVENTS: u32 = 0x0c;
    /// Input: cores, 64 bits.
    pub const CORES: u32 = 0x20;
    /// Input: cores, priority.
    pub const ENDPOINTS: u32 = 0x34;
    /// Input: address, 64 bits.
    pub const SUSPEND_BUFFER: u32 = 0x40;
    /// Input: the address space.
    pub const CONFIG: u32 = 0x50;
    /// Output: endpoints of the group.
    pub const ENDPOINTS_NOW: u32 = 0x10;
    /// Output: endpoints asked for.
    pub const ENDPOINTS_ASKED: u32 = 0x14;
    /// Output: bit 0, idle.
    pub const STATE: u32 = 0x18;

    /// Request: the state's bits.
    pub const STATE_MASK: u32 = 7;
    /// Request: take the endpoints.
    pub const CONFIGURE_ENDPOINTS: u32 = 1 << 4;
    /// Request: update the status words.
    pub const UPDATE_STATUS: u32 = 1 << 5;
    /// Event: a sync object changed.
    pub const SYNC_UPDATE: u32 = 1 << 28;
    /// Event: no stream has work.
    pub const IDLE: u32 = 1 << 29;
    /// Event: progress timer.
    pub const NO_PROGRESS: u32 = 1 << 31;

    /// States of a group.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(u32)]
    pub enum State {
        /// The slot is free.
        #[default]
        Terminated = 0,
        /// New streams run.
        Started = 1,
        /// In the suspend buffer.
        Suspended = 2,
        /// From the suspend buffer.
        Resumed = 3,
    }

    impl State {
        /// State in requests and acknowledgements.
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
    /// Control: registers minus 1 (7:0), scoreboards (15:8), units.
    pub const FEATURES: u32 = 0x00;
    /// Control: address of the input.
    pub const INPUT: u32 = 0x04;
    /// Control: address of the output.
    pub const OUTPUT: u32 = 0x08;
    /// Feature; then: shades fragments, tiles.
    pub const COMPUTES: u32 = 1 << 16;

    /// Input: doorbell in 15:8.
    pub const CONFIG: u32 = 0x04;
    /// Input: interrupting events.
    pub const INTERRUPTS: u32 = 0x0c;
    /// Input: address in the group's space, 64 bits.
    pub const RING: u32 = 0x10;
    /// Input: bytes, a power of two.
    pub const RING_SIZE: u32 = 0x18;
    /// Input: address, 64 bits; first the driver's position.
    pub const RING_INPUT: u32 = 0x30;
    /// Input: address, 64 bits; first the firmware's position.
    pub const RING_OUTPUT: u32 = 0x38;
    /// Output: instruction's address, 64 bits.
    pub const COMMAND: u32 = 0x40;
    /// Output: what is waited for.
    pub const WAIT: u32 = 0x48;
    /// Output: sync object's address, 64 bits.
    pub const WAIT_ADDRESS: u32 = 0x50;
    /// Output: awaited value, low word.
    pub const WAIT_VALUE: u32 = 0x58;
    /// Output: scoreboards in use.
    pub const SCOREBOARDS: u32 = 0x5c;
    /// Output: reason; 3: a sync object.
    pub const BLOCKED: u32 = 0x60;
    /// Output: awaited value, high word.
    pub const WAIT_VALUE_HIGH: u32 = 0x64;
    /// Output: code; the stream can go on.
    pub const FAULT: u32 = 0x80;
    /// Output: fatal code.
    pub const FATAL: u32 = 0x84;
    /// Output: fault details, 64 bits.
    pub const FAULT_INFO: u32 = 0x88;
    /// Output: details, 64 bits.
    pub const FATAL_INFO: u32 = 0x90;
    /// In bytes.
    pub const OUTPUT_SIZE: u32 = 0xd8;

    /// Request: state; 1: run.
    pub const STATE_MASK: u32 = 7;
    /// A running stream's state.
    pub const STARTED: u32 = 1;
    /// Request: waiting counts as idle.
    pub const IDLE_WAITING: u32 = 1 << 8;
    /// Event: a fatal fault.
    pub const FATAL_EVENT: u32 = 1 << 30;
    /// Event: the stream can go on.
    pub const FAULT_EVENT: u32 = 1 << 31;
    /// [`WAIT`]: for a sync object.
    pub const WAIT_SYNC: u32 = 1 << 31;
    /// [`WAIT`]: the value has 64 bits.
    pub const WAIT_WIDE: u32 = 1 << 30;
    /// [`WAIT`]: until greater; else at most.
    pub const WAIT_GREATER: u32 = 1 << 24;
    /// [`BLOCKED`]: by a sync object.
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
