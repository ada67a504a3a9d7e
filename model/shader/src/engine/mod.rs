// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: batches of lanes that execute programs.
//!
//! A host thread is a [`worker`]: it takes sets of work groups and gives their threads places in [`batch`]es of up to 64
//! lanes. A batch executes clauses of micro-operations on rows, one row for each register. Lanes that diverge form groups, and
//! the group at the lowest address runs. Dispatches that come again follow [`tracks`].

pub(crate) mod batch;
pub(crate) mod deal;
pub(crate) mod layout;
pub(crate) mod places;
pub(crate) mod prepared;
pub(crate) mod tracks;
pub(crate) mod worker;
