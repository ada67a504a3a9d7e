// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a signature or a pack is not accepted.

/// Why a signature gives no trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// Wrong magic number.
    NotASignature,
    /// Unsupported version.
    Version(u16),
    /// Wrong length for its counts, or a non-zero field that must be zero.
    Shape,
    /// This file's name is not allowed, or names do not ascend.
    Name(u32),
    /// For a recording of this other length.
    RecordingLength(u64),
    /// Made with another key.
    Key,
    /// The trusted key is no usable Ed25519 public key.
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
    /// The file is shorter or longer than its header says.
    Length,
    /// More files than [`MAX_FILES`](crate::MAX_FILES).
    Files(u32),
    /// Wrong checksum of header and table.
    TableChecksum,
    /// This entry's name is not allowed, names do not ascend, or the first is not the recording.
    Name(u32),
    /// This entry does not follow the one before, or ends outside.
    Place(u32),
    /// Wrong checksum of this entry.
    Checksum(u32),
    /// Non-zero filling in or before this entry.
    NotZero(u32),
}
