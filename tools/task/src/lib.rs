// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the project's tasks share: their error, and programs that they run for what these print.
#![forbid(unsafe_code)]

pub mod error;
mod program;

pub use error::{Error, Result};
pub use program::output;
