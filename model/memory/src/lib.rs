// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the GPU model and a host share.
//!
//! The model sees memory as a bus of 4 KiB pages ([`Bus`]). Behind it lies either memory that this process owns
//! ([`Ram`], for replays and tests) or the memory of a virtual machine ([`Mapped`], mapped from file descriptors), whose caches may be
//! out of step with it ([`Cached`]).
//! Every access is a relaxed atomic one or, for runs of words, as good as one for each word, so that shader threads, a guest's processors and devices may touch the same
//! bytes at the same time. All unsafe code of the model that deals with memory lives in this crate.

mod bus;
mod cached;
mod gather;
mod mapped;
mod page;
mod ram;
mod vectors;
mod words;

pub use bus::{Bus, BusError};
pub use cached::{Cached, LINE_SIZE, Maintenance};
pub use gather::{GATHER_LANES, gather, gather_from};
pub use mapped::{MapError, Mapped};
pub use page::{PAGE_SIZE, Page};
pub use ram::Ram;
pub use vectors::Vectors;
