// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks: what a set of work groups does each time its dispatch comes again, worked out once.
//!
//! Ids, constants and push uniforms are the same each time, and so is what follows from them alone: most addresses,
//! loop counters, their branches. A [`track`] has the rest in order: loads and stores with known addresses, and
//! micro-operations on what was loaded. If an address or a branch depends on memory, there is no track, and the
//! clauses execute each time.
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
