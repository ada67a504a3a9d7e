// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows after the registers.

use crate::rows::REGISTERS;

/// Lane in its warp.
pub const LANE_ID: u16 = REGISTERS as u16;
/// Warp in its work group.
pub const WARP_ID: u16 = LANE_ID + 1;
/// Core.
pub const CORE_ID: u16 = LANE_ID + 2;
/// Address of the thread's storage, low word.
pub const THREAD_LOW: u16 = LANE_ID + 3;
/// High word.
pub const THREAD_HIGH: u16 = LANE_ID + 4;
/// Address of the work group's, low word.
pub const WORKGROUP_LOW: u16 = LANE_ID + 5;
/// High word.
pub const WORKGROUP_HIGH: u16 = LANE_ID + 6;
/// For results without a register.
pub const TEMPORARY: u16 = LANE_ID + 8;
/// Per tuple, in two alternating sets.
pub const TEMPORARIES: u16 = 28;
/// Constants begin here.
pub const CONSTANT: u16 = TEMPORARY + 2 * TEMPORARIES;
