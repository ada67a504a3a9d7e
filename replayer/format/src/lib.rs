// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recording format; an encoder with feature `encode`.
//!
//! A recording is one file of little-endian tables ([`layout`]). [`Recording::parse`] checks every byte against
//! checksums. It never allocates, never panics, and takes linear time. `gpureplay-core` decides what tables mean
//! and what is allowed.
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

/// Bytes; regions are whole pages.
pub const PAGE_SIZE: u32 = 4096;
/// Of a tensor.
pub const MAX_RANK: usize = 6;
/// Of a piece.
pub const MAX_AXES: usize = 8;
