// SPDX-License-Identifier: MIT OR Apache-2.0
//! Codes of kernel drivers' failures.

/// [`gpureplay_core::DeviceError::Refused`] code: memory is not where the driver's rule says; address taken, or
/// rule changed.
pub const MISPLACED: i32 = -1;
/// The recording does not fit: [`crate::Stock::fits`].
pub const UNFIT: i32 = -2;
/// A chain does not end, or leaves the recording's memory; hardware would run on until reset.
pub const ENDLESS: i32 = -3;
/// The driver ended a long chain.
pub const TOO_LONG: i32 = -4;
/// A job did not end, without a reason in its header.
pub const FAULTED: i32 = -5;

/// Meaning of a [`gpureplay_core::DeviceError::Refused`] code.
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
