// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chains that follow each other become one chain, and one chain becomes several.
//!
//! A driver submits a chain for each kernel, and reuses the memory of its descriptors for the next one, so that the processor has to wait
//! and to write between two chains. [`link`] gives each chain descriptors of its own, which set-up uploads once, and joins what
//! then follows each other without work of the processor: one submission, one interrupt, one look at the status of all jobs.
//! Every job that came from a later chain gets a barrier, and a dependency on the last job before it. Which rules of the hardware
//! this rests on is in `docs/reference/descriptors.md`.
//!
//! [`whole`] joins the chains of a recording whose layers can be run one by one: for whoever runs all of them.
//! [`split`] submits each job by itself: for tools that stop, measure or change single jobs.

mod chains;
mod copies;
mod error;
mod group;
pub(crate) mod linked;
mod objects;
mod proof;
mod split;
mod survey;
mod whole;

pub use error::LinkError;
pub use group::{MOST_JOBS, link};
pub use linked::{Linked, Place};
pub use split::{lengths, split};
pub use whole::{join_layers, whole};
