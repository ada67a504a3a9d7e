// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw trace to recording.

#![forbid(unsafe_code)]

pub mod capture;
pub mod chain;
pub mod differential;
mod error;
pub mod pages;
pub mod ranges;
pub mod tag;

pub use capture::Capture;
pub use error::CompileError;
