// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks: what a set of work groups does each time its dispatch comes again.
//!
//! What follows from ids, constants and push uniforms alone is the same each time: most addresses, loops, branches.
//! A [`track`] has the rest in order: loads and stores with known addresses, and micro-operations on what was
//! loaded. If an address or a branch depends on memory, there is no track.

mod known;
mod pages;
mod private;
mod record;
mod room;
mod track;

pub(crate) use known::{Set, Tracks, Way};
pub(crate) use pages::Resolved;
pub(crate) use room::Room;

#[cfg(test)]
mod tests;
