// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made a recording, and everything that belongs to it in one file.
//!
//! A detached [`Signature`] covers a recording and the SHA-256 of the files beside it (manifest, weights, inputs, expected outputs).
//! It is an Ed25519 signature (RFC 8032) and carries a counter that lets a device refuse recordings older than the one
//! it has seen. A [`Pack`] holds all these files. Both layouts are in `docs/reference/format.md`.
//!
//! Reading and checking need no allocation and never panic. Making either is behind the feature `write`.
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

/// Name of the recording in a directory and in a pack.
pub const RECORDING: &str = "recording.gpr";
/// Name of the signature in a directory and in a pack.
pub const SIGNATURE: &str = "recording.sig";
