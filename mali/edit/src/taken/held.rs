// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job's uniforms and uniform buffers.

use crate::scene::Memory;

#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) uniforms: Vec<u8>,
    pub(super) buffers: Vec<Vec<u8>>,
    pub(super) ranges: Vec<(u64, u64)>,
}

impl Held {
    pub(super) fn of(memory: &Memory, at: u64, length: u64) -> Self {
        Self {
            uniforms: memory.bytes(at, usize::try_from(length).unwrap_or(0)),
            buffers: Vec::new(),
            ranges: vec![(at, length)],
        }
    }

    pub(super) fn buffer(&mut self, memory: &Memory, at: u64, length: u64) {
        if at == 0 {
            self.buffers.push(Vec::new());
            return;
        }
        self.ranges.push((at, length));
        let length = usize::try_from(length).unwrap_or(0);
        self.buffers.push(memory.bytes(at, length));
    }
}
