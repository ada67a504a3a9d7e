// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a dispatch did, in numbers.

const MESSAGE_KINDS: usize = 16;

/// Counts of a dispatch, once per active lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Work groups that ran.
    pub workgroups: u64,
    /// Threads that ran.
    pub threads: u64,
    /// Clauses, once per batch.
    pub clauses: u64,
    /// Operations of the FMA unit, without NOP.
    pub fma: u64,
    /// Operations of the ADD unit, without NOP and messages.
    pub add: u64,
    messages: [u64; MESSAGE_KINDS],
    kinds: &'static [&'static str],
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl Statistics {
    /// Operations of all units.
    pub fn lane_operations(&self) -> u64 {
        self.fma + self.add + self.messages()
    }

    /// Loads, stores, atomics, textures, barriers.
    pub fn messages(&self) -> u64 {
        self.messages.iter().sum()
    }

    /// Kinds that occurred, with their numbers of messages.
    pub fn messages_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.kinds.iter().copied().zip(self.messages);
        all.filter(|(_, count)| *count != 0)
    }

    pub(crate) fn naming(self, kinds: &'static [&'static str]) -> Statistics {
        Statistics { kinds, ..self }
    }

    pub(crate) fn count_message(&mut self, kind: u8, lanes: u64) {
        self.messages[usize::from(kind) % MESSAGE_KINDS] += lanes;
    }

    /// Adds another part's counts.
    pub fn add(&mut self, other: &Statistics) {
        self.workgroups += other.workgroups;
        self.threads += other.threads;
        self.clauses += other.clauses;
        self.fma += other.fma;
        self.add += other.add;
        for (count, other) in self.messages.iter_mut().zip(other.messages) {
            *count += other;
        }
        if self.kinds.is_empty() {
            self.kinds = other.kinds;
        }
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}
