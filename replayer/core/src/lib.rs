// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a recording, then replays it on a [`Gpu`].
//!
//! [`verify()`] makes a [`Recording`](gpureplay_format::Recording) a [`Verified`] one, without a device; a
//! [`Session`] accepts nothing else. The engine owns all that is dangerous or machine-dependent: reset, power, page
//! tables, address spaces, doorbells, interrupt masks. A recording only says which memory there is, what goes in,
//! which chains run, what comes out.
//!
//! A [`Family`] knows permitted settings and work, and drives registers; `mali_drive` has one. A [`Gpu`] is a device:
//! registers, memory and interrupts, or a kernel driver for whole chains.
//!
//! No allocation, panic, floating point, unsafe code or unbounded wait. Errors are small values ([`ReplayError`],
//! [`Violation`]); the library has their texts.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod engine;
mod error;
pub mod family;
pub mod gpu;
pub mod middleware;
pub mod verify;

pub use engine::{NoTensors, Options, Session, Tensors, Workspace};
pub use error::{DeviceError, ErrorKind, NO_ACTION, ReplayError};
pub use family::{Driver, Failed, Family};
pub use gpu::{Chain, Gpu, Lines, Submission, UsedUp, Wrapper};
pub use verify::{Limits, Rule, Verified, Violation, verify};
