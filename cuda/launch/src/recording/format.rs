// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of recorded launches.

/// The only version that is written and read.
pub const FORMAT: u32 = 1;
