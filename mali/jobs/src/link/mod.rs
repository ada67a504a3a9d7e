// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins and splits chains.
//!
//! A driver submits a chain for each kernel and reuses its descriptors' memory, so the processor must wait and write
//! between chains. [`link`] gives each chain its own descriptors, uploaded once by set-up, and joins what then
//! follows without the processor. Every job of a later chain gets a barrier and a dependency on the last job before
//! it. Hardware rules: `docs/reference/descriptors.md`.

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
