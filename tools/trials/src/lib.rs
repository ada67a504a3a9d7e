// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trials of the replayer, on shipped recordings and the model.
//!
//! - [`mutants`]: wrong in one point, refused by the broken rule;
//! - [`faults`]: every fault at every device call of a replay;
//! - [`fingerprints`]: hashes of replays' device calls;
//! - [`soundness`]: random changes; what is accepted stays inside its own pages;
//! - [`cost`]: what verification costs;
//! - [`review`]: recordings of attackers.
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
