// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the GPU model and a host share.
//!
//! The model sees a bus of 4 KiB pages ([`Bus`]): memory of this process ([`Ram`], for replays and tests) or of a
//! virtual machine ([`Mapped`], from file descriptors), whose caches may be out of step ([`Cached`]). Every access
//! is a relaxed atomic one or as good as one for each word, so that shader threads, a guest's processors and
//! devices may touch the same bytes at once. All unsafe code of the model that deals with memory lives in this
//! crate.

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
