// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trials that the replayer must pass, on the shipped recordings and the GPU model.
//!
//! - [`mutants`]: recordings that are wrong in one point, each refused by the rule that it breaks;
//! - [`faults`]: every kind of fault at every call that a replay makes to its device;
//! - [`fingerprints`]: hashes of what the replays of shipped recordings do to their device;
//! - [`soundness`]: recordings changed at random; what is accepted stays inside its own pages;
//! - [`cost`]: what verification costs;
//! - [`review`]: recordings with which others attacked.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod cost;
pub mod faults;
pub mod fingerprints;
pub mod mutants;
pub mod parts;
pub mod review;
pub mod rig;
pub mod seeds;
pub mod shipped;
pub mod soundness;

pub use parts::Parts;
