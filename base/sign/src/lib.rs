// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made a recording, and all its files in one.
//!
//! A detached [`Signature`] (Ed25519, RFC 8032) covers a recording, the SHA-256 of its files (manifest, weights,
//! inputs, expected outputs), and a counter against older recordings. A [`Pack`] holds all files. Layouts:
//! `docs/reference/format.md`.
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

/// In directories and packs.
pub const RECORDING: &str = "recording.gpr";
/// In directories and packs.
pub const SIGNATURE: &str = "recording.sig";
