// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a signature or a pack is not accepted.

/// Why a signature does not make a recording trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// It does not start with the magic number.
    NotASignature,
    /// It is of another version, which is given.
    Version(u16),
    /// Its length is not what its counts say, or a field that must be zero is not.
    Shape,
    /// The name of this file is not allowed, or names do not ascend.
    Name(u32),
    /// It is for a recording of another length, which is given.
    RecordingLength(u64),
    /// It was made with another key.
    Key,
    /// The trusted key is no Ed25519 public key that may be used.
    WeakKey,
    /// It does not fit the recording, the files and the key: something was changed.
    Forged,
    /// The recording is older than what is allowed.
    Rollback {
        /// Counter of the signature.
        counter: u64,
        /// Smallest counter that is allowed.
        minimum: u64,
    },
}

/// Why bytes are not a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackError {
    /// It does not start with the magic number.
    NotAPack,
    /// It is of another version, which is given.
    Version(u16),
    /// The file is shorter or longer than its header says.
    Length,
    /// It has this many files, more than [`MAX_FILES`](crate::MAX_FILES).
    Files(u32),
    /// The checksum of header and table is wrong.
    TableChecksum,
    /// The name of this entry is not allowed, names do not ascend, or the first is not the recording.
    Name(u32),
    /// This entry does not start where the one before ends, or ends outside.
    Place(u32),
    /// The checksum of this entry is wrong.
    Checksum(u32),
    /// Bytes that must be zero are not, in or before this entry.
    NotZero(u32),
}
