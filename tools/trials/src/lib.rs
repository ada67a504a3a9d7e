// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trials of the replayer.
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
