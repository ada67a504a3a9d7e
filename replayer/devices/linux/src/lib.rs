// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux devices for the replay engine.
//!
//! [`Stock`] uses kernel drivers: [`panfrost`], [`panthor`], [`kbase`]. [`nano::Nano`] uses the nano driver
//! (`nano-driver/`), [`devmem::DevMem`] /dev/mem. [`board`] knows boards, [`machine`] the GPU's obstacles.
//! [`optee`] replays in the secure world.
//!
//! All unsafe code of the replayer on Linux is here: `ioctl`, `mmap`, and mapped memory.

mod barrier;
pub mod board;
mod chains;
pub mod device_tree;
pub mod devmem;
pub mod error;
pub mod kbase;
pub mod machine;
mod mapped;
mod mappings;
mod misfit;
pub mod nano;
mod nano_abi;
pub mod optee;
mod own_tables;
pub mod panfrost;
pub mod panthor;
mod pin;
mod refusal;
mod render_node;
mod stock;
mod structures;
mod watched;
mod way_in;

pub use board::Board;
pub use devmem::DevMem;
pub use error::OpenError;
pub use misfit::Misfit;
pub use nano::{Mode, Nano};
pub use stock::Stock;
