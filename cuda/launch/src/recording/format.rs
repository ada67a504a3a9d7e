// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of recorded launches.

/// The version of the format that is written and read.
pub const FORMAT: u32 = 1;
