// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analysers of what shaders do to memory.
//!
//! A [`Collector`] watches a model (`mali_model::Options::observer`) and analyses the compute jobs that it was
//! asked for. It counts clauses and lanes, adds up accesses by line, compares bytes that warps use with those of
//! their lines, and finds races, reads of unwritten memory and accesses outside tensors. Results do not depend on
//! the host's threads. An analysis that had to stop says so: [`report::Verdict`].
//!
//! The normalisations, and what is left out, stand in `docs/kernels.md`.
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
