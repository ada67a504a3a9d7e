// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks: what a set of work groups does each time that its dispatch comes again, worked out once.
//!
//! Ids, constants and push uniforms are the same each time, and so is all that follows from them alone: most addresses, the
//! counters of loops, the branches that these decide. A [`track`] has the rest, in the order in which it was seen to happen: loads and
//! stores with known addresses, and micro-operations on what was loaded. Where something else depends on memory - an address,
//! a branch - there is no track, and the clauses are executed each time.
//!
//! [`record`] makes tracks, [`known`] keeps them, [`room`] says how many are worth it.

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
