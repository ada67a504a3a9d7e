// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: batches of lanes that execute programs.
//!
//! A host thread is a [`worker`]: it places threads of work groups in [`batch`]es of up to 64 lanes, which execute
//! micro-operations on rows, one per register. Repeated dispatches follow [`tracks`].

pub(crate) mod batch;
pub(crate) mod deal;
pub(crate) mod layout;
pub(crate) mod places;
pub(crate) mod prepared;
pub(crate) mod tracks;
pub(crate) mod worker;
