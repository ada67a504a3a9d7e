// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's jobs: which there are ([`Jobs`]), which are meant ([`Selector`]), what they cost ([`mod@measure`]),
//! and all of that for every form of output ([`Report`]).
//!
//! ```
//! use gpureplay_jobs::{Jobs, Selector};
//! use gpureplay_library::Recording;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/digits-g52");
//! let recording = Recording::open(directory)?;
//! let jobs = Jobs::of(&recording)?;
//! let selector: Selector = "layer:conv2,18..".parse()?;
//! for index in selector.select(&jobs)? {
//!     println!("{index} {}", jobs.jobs[index].title());
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod analysis;
mod figures;
pub mod measure;
pub mod registers;
pub mod report;
mod selector;
mod shown;
mod table;
pub mod timeline;

pub use mali_jobs::walk::{Code, Words};
pub use measure::{Measured, measure};
pub use report::Report;
pub use selector::{Selector, SelectorError};
pub use shown::Shown;
pub use table::{Chain, Compute, Job, Jobs, JobsError, Valhall};
pub use timeline::Timeline;
