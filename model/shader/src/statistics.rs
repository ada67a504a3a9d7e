// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a dispatch did, in numbers.

use mali_isa::Message;

/// Kinds of messages, by their number in a clause header.
const KINDS: usize = 16;

/// Counts of one dispatch. An operation counts once for each lane that was active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Work groups that ran.
    pub workgroups: u64,
    /// Threads that ran.
    pub threads: u64,
    /// Clauses, once for each batch of lanes that executed one together.
    pub clauses: u64,
    /// Operations of the FMA unit, NOP excluded.
    pub fma: u64,
    /// Operations of the ADD unit, NOP and messages excluded.
    pub add: u64,
    messages: [u64; KINDS],
    /// Bytes that loads read.
    pub bytes_read: u64,
    /// Bytes that stores wrote.
    pub bytes_written: u64,
}

impl Statistics {
    /// Operations of all units.
    pub fn lane_operations(&self) -> u64 {
        self.fma + self.add + self.messages()
    }

    /// Messages of all kinds: loads, stores, atomics, texture accesses, barriers.
    pub fn messages(&self) -> u64 {
        self.messages.iter().sum()
    }

    /// Messages of one kind.
    pub fn messages_of(&self, kind: Message) -> u64 {
        self.messages[usize::from(kind.number()) % KINDS]
    }

    pub(crate) fn count_message(&mut self, kind: Message, lanes: u64) {
        self.messages[usize::from(kind.number()) % KINDS] += lanes;
    }

    /// Adds the counts of another part of the same dispatch.
    pub fn add(&mut self, other: &Statistics) {
        self.workgroups += other.workgroups;
        self.threads += other.threads;
        self.clauses += other.clauses;
        self.fma += other.fma;
        self.add += other.add;
        for (count, other) in self.messages.iter_mut().zip(other.messages) {
            *count += other;
        }
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}
