// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with an image.

use thiserror::Error;

/// Why an image is not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// The first bytes are those of no known image.
    #[error("neither a fatbin nor a cubin nor a PTX text")]
    Unknown,
    /// It ends before what it says it holds.
    #[error("cut off at byte {offset:#x}")]
    CutOff {
        /// Where the missing bytes begin.
        offset: usize,
    },
    /// It says that it is larger than an image may be.
    #[error("{size} bytes are more than an image may have")]
    TooLarge {
        /// The size that it names.
        size: u64,
    },
    /// It holds more of something than it may.
    #[error("it has more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// What it may have.
        limit: usize,
    },
    /// All images together have more of something than they may.
    #[error("the images together have more than {limit} {what}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// What they may have.
        limit: u64,
    },
    /// Two kernels have one name.
    #[error("it has two kernels of the name {0:?}")]
    Twice(String),
    /// A header that says nonsense.
    #[error("the header at byte {offset:#x} is damaged")]
    Header {
        /// Where the header begins.
        offset: usize,
    },
    /// A member that does not decompress.
    #[error("a member at byte {offset:#x} does not decompress")]
    Compressed {
        /// Where its bytes begin.
        offset: usize,
    },
    /// The ELF file is damaged.
    #[error("the cubin is damaged: {0}")]
    Elf(#[from] object::Error),
    /// The PTX text is not text.
    #[error("the PTX is not text")]
    Text,
    /// The PTX text declares something that cannot be.
    #[error("the PTX says {0:?}")]
    Declaration(String),
}
