// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generations of the Bifrost architecture.

/// Generation of instructions and descriptors. Encodings of instructions are the same; warps and descriptors differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// Version 6: Mali-G71, Mali-G72. Warps of 4 lanes.
    V6,
    /// Version 7: Mali-G31, Mali-G51, Mali-G52, Mali-G76. Warps of 8 lanes as runtimes see them.
    #[default]
    V7,
}

impl Architecture {
    /// Lanes of a warp: threads that cross-lane instructions see together.
    #[inline]
    pub const fn warp_lanes(self) -> u32 {
        match self {
            Architecture::V6 => 4,
            Architecture::V7 => 8,
        }
    }
}
