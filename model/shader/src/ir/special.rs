// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows behind the registers: lane values, temporaries, constants.

use crate::rows::REGISTERS;

pub(crate) const LANE_ID: u16 = REGISTERS as u16;
pub(crate) const WARP_ID: u16 = LANE_ID + 1;
pub(crate) const CORE_ID: u16 = LANE_ID + 2;
pub(crate) const THREAD_LOW: u16 = LANE_ID + 3;
pub(crate) const THREAD_HIGH: u16 = LANE_ID + 4;
pub(crate) const WORKGROUP_LOW: u16 = LANE_ID + 5;
pub(crate) const WORKGROUP_HIGH: u16 = LANE_ID + 6;
/// For results without a register.
pub(crate) const TEMPORARY: u16 = LANE_ID + 8;
/// Per tuple, in two alternating sets.
pub(crate) const TEMPORARIES: u16 = 28;
pub(crate) const CONSTANT: u16 = TEMPORARY + 2 * TEMPORARIES;
