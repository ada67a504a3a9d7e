// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refusals of signatures and packs.

/// Why a signature gives no trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// Wrong magic number.
    NotASignature,
    /// Unsupported version.
    Version(u16),
    /// Wrong length for its counts, or a field is not zero.
    Shape,
    /// Bad name of this file, or names do not ascend.
    Name(u32),
    /// Another recording's length.
    RecordingLength(u64),
    /// Made with another key.
    Key,
    /// No usable Ed25519 public key.
    WeakKey,
    /// Recording, files or key were changed.
    Forged,
    /// The recording is too old.
    Rollback {
        /// Of the signature.
        counter: u64,
        /// Smallest allowed.
        minimum: u64,
    },
}

/// Why bytes are no pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackError {
    /// Wrong magic number.
    NotAPack,
    /// Unsupported version.
    Version(u16),
    /// Not as long as its header says.
    Length,
    /// More files than [`MAX_FILES`](crate::MAX_FILES).
    Files(u32),
    /// Wrong checksum of header and table.
    TableChecksum,
    /// Bad name of this entry, names do not ascend, or the first is not the recording.
    Name(u32),
    /// Not after the entry before, or outside.
    Place(u32),
    /// Wrong checksum of this entry.
    Checksum(u32),
    /// Filling in or before this entry.
    NotZero(u32),
}
