// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of images.

use thiserror::Error;

/// Why an image is not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// No known image.
    #[error("neither a fatbin nor a cubin nor a PTX text")]
    Unknown,
    /// It ends too early.
    #[error("cut off at byte {offset:#x}")]
    CutOff {
        /// First missing byte.
        offset: usize,
    },
    /// Too large.
    #[error("{size} bytes are more than an image may have")]
    TooLarge {
        /// Its stated size.
        size: u64,
    },
    /// It holds too many.
    #[error("it has more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// Limit.
        limit: usize,
    },
    /// Too much in all images.
    #[error("the images together have more than {limit} {what}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// Limit.
        limit: u64,
    },
    /// Two kernels have one name.
    #[error("it has two kernels of the name {0:?}")]
    Twice(String),
    /// A senseless header.
    #[error("the header at byte {offset:#x} is damaged")]
    Header {
        /// Its offset.
        offset: usize,
    },
    /// A member does not decompress.
    #[error("a member at byte {offset:#x} does not decompress")]
    Compressed {
        /// Offset of its bytes.
        offset: usize,
    },
    /// The ELF file is damaged.
    #[error("the cubin is damaged: {0}")]
    Elf(#[from] object::Error),
    /// The PTX is not text.
    #[error("the PTX is not text")]
    Text,
    /// An impossible PTX declaration.
    #[error("the PTX says {0:?}")]
    Declaration(String),
}
