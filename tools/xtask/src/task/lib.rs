// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by tasks.
#![forbid(unsafe_code)]

mod build;
pub mod cases;
pub mod checks;
pub mod digits;
pub mod error;
pub mod files;
pub mod measured;
pub mod packages;
pub mod page;
mod program;

pub use build::{build, target};
pub use error::{Error, Result};
pub use program::{ended, output, output_of, run, started};
