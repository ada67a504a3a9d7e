// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of recorded launches.

/// Written and read.
pub const FORMAT: u32 = 1;
