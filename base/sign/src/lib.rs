// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made a recording, and everything that belongs to it in one file.
//!
//! A detached [`Signature`] covers a recording and the SHA-256 of the files beside it (manifest, weights, inputs,
//! expected outputs). It is Ed25519 (RFC 8032), with a counter by which a device refuses older recordings. A
//! [`Pack`] holds all these files. Layouts: `docs/reference/format.md`.
//!
//! Reading and checking never allocate or panic. Feature `write` makes both.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "write")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod bytes;
mod error;
mod names;
mod pack;
mod signature;
#[cfg(feature = "write")]
mod write;

pub use error::{PackError, SignatureError};
pub use names::{MAX_FILES, MAX_NAME, is_safe};
pub use pack::{Pack, Packed};
pub use signature::{MAX_SIGNATURE, PublicKey, Signature, SignedFile, SignedFiles, Trusted};
#[cfg(feature = "write")]
pub use write::{SecretKey, WriteError, digest, pack, sign};

/// The recording's name in directories and packs.
pub const RECORDING: &str = "recording.gpr";
/// The signature's name in directories and packs.
pub const SIGNATURE: &str = "recording.sig";
