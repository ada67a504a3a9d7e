// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analysers of what shaders do to memory.
//!
//! A [`Collector`] watches a model (`mali_model::Options::observer`) and puts an analyser in front of each compute job that it
//! was asked to look into. It counts clauses and lanes, adds up accesses by line of memory, compares the bytes that warps use with
//! those of the lines that they touch, and looks for races, for reads of memory that nobody wrote and for accesses outside of
//! every tensor. Results do not depend on the host's threads. An analysis that had to stop says so: [`report::Verdict`].
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
