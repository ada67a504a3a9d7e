// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trials of the replayer, on shipped recordings and the model.
//!
//! - [`mutants`]: wrong in one point, refused by that rule;
//! - [`faults`]: every fault at every device call;
//! - [`fingerprints`]: hashes of device calls;
//! - [`soundness`]: random changes; accepted recordings stay in their pages;
//! - [`cost`]: of verification;
//! - [`review`]: attackers' recordings.
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
