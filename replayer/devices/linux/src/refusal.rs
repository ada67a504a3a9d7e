// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a driver of the kernel that runs job chains does not run one: the numbers, and what they mean.

/// [`gpureplay_core::DeviceError::Refused`] has this number when memory is not where the driver's rule says; its address was taken, or the rule has changed.
pub const MISPLACED: i32 = -1;
/// The same when the recording does not fit: see [`crate::Stock::fits`], which says why.
pub const UNFIT: i32 = -2;
/// The same when a chain does not end, or leaves the recording's memory. Hardware would run it until it is reset.
pub const ENDLESS: i32 = -3;
/// The same when the driver ended a chain that took too long.
pub const TOO_LONG: i32 = -4;
/// The same when a job did not end, and its header does not say why.
pub const FAULTED: i32 = -5;

/// What a number of [`gpureplay_core::DeviceError::Refused`] means, if a driver of the kernel gives it.
pub fn refusal(code: i32) -> Option<&'static str> {
    match code {
        MISPLACED => Some(
            "the driver put memory at another address than it should; please report the kernel's version",
        ),
        UNFIT => Some("the driver cannot give the recording what it needs"),
        ENDLESS => Some(
            "a job chain returns to one of its jobs, or has one outside of the recording's memory; the recording is wrong",
        ),
        TOO_LONG => Some(
            "the driver ended a chain of jobs that ran too long (panfrost: 500 ms, kbase: 5 s), or with the GPU that another program hung; shorter chains compute the same: gpureplay link --split",
        ),
        FAULTED => Some(
            "a job did not end: most likely it accessed memory that it does not have; the kernel's log has the address (sudo dmesg)",
        ),
        _ => None,
    }
}
