// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recording format: a zero-copy view for everybody, an encoder behind the feature `encode`.
//!
//! A recording is one file of little-endian tables ([`layout`]). [`Recording::parse`] checks every byte of it against
//! the checksums of its sections and hands out typed slices without copying. It never allocates, never panics, and
//! takes time linear in the length of the file. What the tables *mean* for a GPU, and whether that is allowed, is the
//! business of `gpureplay-core`.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "encode")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod action;
pub mod checksum;
pub mod codes;
#[cfg(feature = "encode")]
pub mod encode;
pub mod layout;
pub mod lz4;
mod named;
pub mod view;

pub use action::{Action, ActionFault, Actions, Cursor, Payload};
pub use codes::{
    Access, ElementType, Encoding, Opcode, RegionKind, Section, SegmentKind, TensorKind,
};
#[cfg(feature = "encode")]
pub use encode::{Axis, Builder, EncodeError, MAX_SUBMITTED_JOBS, Piece, Tensor, TensorId};
pub use view::{Fault, ParseError, Recording};

/// Size of a GPU page in bytes; regions are whole pages.
pub const PAGE_SIZE: u32 = 4096;
/// Highest number of dimensions of a tensor.
pub const MAX_RANK: usize = 6;
/// Highest number of axes that one piece of a tensor may have.
pub const MAX_AXES: usize = 8;
