// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings taken apart and changed.
//!
//! A [`Scene`] is a job with the memory that it finds, taken out of a replay on the model; it runs by itself, as it is or changed.
//! [`extract()`] makes a recording of it that stands alone.
#![forbid(unsafe_code)]

mod error;
mod extract;
mod footprint;
mod provenance;
mod scene;

pub use error::{EditError, Result};
pub use extract::{Extracted, extract};
pub use footprint::{Bytes, Footprint};
pub use provenance::edited;
pub use scene::{Memory, Outcome, Scene, Submit};
