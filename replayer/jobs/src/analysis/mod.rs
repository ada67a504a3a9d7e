// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the jobs of a recording do to memory, and how that is shown: [`analyse`] runs a recording on the model with analysers,
//! [`annotate`] writes what they found beside the instructions, [`page`] makes one HTML file of it.

pub mod analyse;
pub mod annotate;
mod map;
pub mod page;

pub use mali_analysis::{What, report};
pub use map::map_of;
