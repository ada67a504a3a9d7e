// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows behind the registers: what depends on the lane alone, results that no register takes, and constants.

use crate::rows::REGISTERS;

pub(crate) const LANE_ID: u16 = REGISTERS as u16;
/// Number of the warp in its work group.
pub(crate) const WARP_ID: u16 = LANE_ID + 1;
/// Number of the shader core.
pub(crate) const CORE_ID: u16 = LANE_ID + 2;
/// Address of the thread's storage, low word.
pub(crate) const THREAD_LOW: u16 = LANE_ID + 3;
/// Address of the thread's storage, high word.
pub(crate) const THREAD_HIGH: u16 = LANE_ID + 4;
/// Address of the work group's storage, low word.
pub(crate) const WORKGROUP_LOW: u16 = LANE_ID + 5;
/// Address of the work group's storage, high word.
pub(crate) const WORKGROUP_HIGH: u16 = LANE_ID + 6;
/// First of the rows for results that no register takes.
pub(crate) const TEMPORARY: u16 = LANE_ID + 8;
/// Temporary rows of a tuple; tuples take turns with two sets of them.
pub(crate) const TEMPORARIES: u16 = 28;
/// First of the rows that hold the same value in all lanes.
pub(crate) const CONSTANT: u16 = TEMPORARY + 2 * TEMPORARIES;
