// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the GPU does with memory.

use core::fmt;

/// Access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads data.
    Read,
    /// Writes data, also atomically.
    Write,
    /// Fetches instructions.
    Execute,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Execute => "execute",
        })
    }
}
