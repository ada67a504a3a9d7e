// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analysers of what shaders do to memory.
//!
//! A [`Collector`] analyses chosen compute jobs of a model. Results do not depend on host threads. A
//! [`report::Verdict`] says whether an analysis had to stop.
//!
//! Normalisations and omissions: `docs/kernels.md`.
#![forbid(unsafe_code)]

mod between;
mod collector;
mod counts;
mod heat;
mod lines;
mod map;
mod outside;
mod pages;
mod part;
mod pattern;
mod races;
pub mod report;
mod uninit;
mod what;

pub use between::Unordered;
pub use collector::Collector;
pub use map::{Area, AreaKind, Map};
pub use what::{UnknownAnalysis, What};
