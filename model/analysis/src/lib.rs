// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analysers of what shaders do to memory.
//!
//! A [`Collector`] observes a model and analyses chosen compute jobs: counts of
//! clauses and lanes, accesses by line, warps' use of lines, races, reads of unwritten memory, accesses outside
//! tensors. Results do not depend on host threads. A [`report::Verdict`] says whether an analysis had to stop.
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
