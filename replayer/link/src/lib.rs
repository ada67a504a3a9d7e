// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chains that follow each other become one chain, and one chain becomes several.
//!
//! A driver submits a chain for each kernel, and reuses the memory of its descriptors for the next one, so that the processor has to wait
//! and to write between two chains. [`link`] gives each chain descriptors of its own, which set-up uploads once, and joins what
//! then follows each other without work of the processor: one submission, one interrupt, one look at the status of all jobs.
//! Every job that came from a later chain gets a barrier, and a dependency on the last job before it. Which rules of the hardware
//! this rests on is in `docs/jobs.md`.
//!
//! [`whole`] joins the chains of a recording whose layers can be run one by one: for whoever runs all of them.
//! [`split`] submits each job by itself: for tools that stop, measure or change single jobs.
#![forbid(unsafe_code)]

mod copies;
mod edit;
mod group;
mod objects;
mod proof;
mod split;
mod survey;
mod whole;

pub use group::{Linked, MOST_JOBS, Place, link};
pub use split::{lengths, split};
pub use whole::whole;

use gpureplay_format::EncodeError;
use gpureplay_inspect::{DeepViolation, Full};

/// Why the chains of a recording cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Its chains break a rule.
    #[error("{0}")]
    Deep(#[from] DeepViolation),
    /// More is uploaded than is kept of a recording's memory.
    #[error("action {action} uploads to {address:#x} more than is kept of a recording's memory")]
    Memory {
        /// Index of the action.
        action: u32,
        /// Where it writes to.
        address: u64,
    },
    /// The new recording cannot be stored.
    #[error("the new recording cannot be stored: {0}")]
    Encode(#[from] EncodeError),
    /// The new recording would not be what it is meant to be: a defect of this crate.
    #[error("the new recording is not the same computation: {0}")]
    Different(String),
}

impl From<Full> for LinkError {
    fn from(full: Full) -> Self {
        Self::Memory {
            action: full.action,
            address: full.address,
        }
    }
}
