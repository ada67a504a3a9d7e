// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the GPU model and a host share.
//!
//! A bus of 4 KiB pages ([`Bus`]): this process's memory ([`Ram`]) or a virtual machine's ([`Mapped`]), maybe behind
//! caches ([`Cached`]). Accesses are relaxed atomics or as good per word: shader threads, guest processors and devices
//! may touch the same bytes. All unsafe memory code of the model is here.

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
