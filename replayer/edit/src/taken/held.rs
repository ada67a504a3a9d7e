// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job is given besides its code: its uniforms, and what lies in its uniform buffers.

use crate::scene::Memory;

/// Uniforms and uniform buffers of a job, with their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) uniforms: Vec<u8>,
    /// What is in each uniform buffer, in the order of their descriptors.
    pub(super) buffers: Vec<Vec<u8>>,
    /// Where all that is: first byte, number of bytes.
    pub(super) ranges: Vec<(u64, u64)>,
}

impl Held {
    /// Uniforms that lie there.
    pub(super) fn of(memory: &Memory, at: u64, length: u64) -> Self {
        Self {
            uniforms: memory.bytes(at, usize::try_from(length).unwrap_or(0)),
            buffers: Vec::new(),
            ranges: vec![(at, length)],
        }
    }

    /// Takes one more buffer along; one at address 0 is none.
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
