// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generations of the architecture: Bifrost, then Valhall.

/// Generation. Encodings of instructions differ only between Bifrost and Valhall; warps and descriptors always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// Mali-G71, Mali-G72. Warps of 4 lanes.
    V6,
    /// Mali-G31, Mali-G51, Mali-G52, Mali-G76. Warps of 8 lanes as runtimes see them.
    #[default]
    V7,
    /// Valhall with a job manager: Mali-G57. Warps of 16 lanes.
    V9,
    /// Valhall with command streams: Mali-G610. Warps of 16 lanes.
    V10,
}

impl Architecture {
    /// Threads that cross-lane instructions see together.
    #[inline]
    pub const fn warp_lanes(self) -> u32 {
        match self {
            Architecture::V6 => 4,
            Architecture::V7 => 8,
            Architecture::V9 | Architecture::V10 => 16,
        }
    }

    /// Whether instructions come in clauses (Bifrost). On Valhall each word is one.
    pub const fn has_clauses(self) -> bool {
        matches!(self, Architecture::V6 | Architecture::V7)
    }

    /// Whether shaders find resources through one list of tables (Valhall).
    pub const fn has_resource_tables(self) -> bool {
        !self.has_clauses()
    }
}
