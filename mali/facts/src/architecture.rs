// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generations of the architecture.

/// Bifrost and Valhall have one instruction encoding each; warps and descriptors differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// Mali-G71, Mali-G72. Warps of 4 lanes.
    V6,
    /// Mali-G31, Mali-G51, Mali-G52, Mali-G76. Warps of 8 for runtimes.
    #[default]
    V7,
    /// Valhall with a job manager: Mali-G57. Warps of 16.
    V9,
    /// Valhall with command streams: Mali-G610. Warps of 16.
    V10,
}

impl Architecture {
    /// Lanes of cross-lane instructions.
    #[inline]
    pub const fn warp_lanes(self) -> u32 {
        match self {
            Architecture::V6 => 4,
            Architecture::V7 => 8,
            Architecture::V9 | Architecture::V10 => 16,
        }
    }

    /// On Valhall, each word is one.
    pub const fn has_clauses(self) -> bool {
        matches!(self, Architecture::V6 | Architecture::V7)
    }

    /// Valhall has them, for buffers, textures and samplers.
    pub const fn has_resource_tables(self) -> bool {
        !self.has_clauses()
    }
}
