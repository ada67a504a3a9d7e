// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the project's tasks share: their error, programs that they run for what these print, checks that are counted, what
//! they measured, the hard cases of OpenCL, and the packages that two of them try.
#![forbid(unsafe_code)]

pub mod cases;
pub mod checks;
pub mod digits;
pub mod error;
pub mod measured;
pub mod packages;
pub mod page;
mod program;

pub use error::{Error, Result};
pub use program::{ended, output};
