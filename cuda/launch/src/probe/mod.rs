// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts calls of probes into a PTX text: before accesses to memory, and where basic blocks begin.
//!
//! The text is that of strangers: nothing here panics, and what is added is bounded by [`MAX_SITES`]. What the text computes stays: a
//! probe gets copies of values, and writes no register of the kernel. Source: the PTX ISA, chapters 4, 7 and 9.
#![forbid(unsafe_code)]

mod access;
mod module;
mod registers;
mod rewrite;
mod scan;

pub use access::{Kind, Space};
pub use rewrite::{Calls, Instrumented, MAX_SITES, Site, instrument};

use thiserror::Error;

/// Why a text gets no probes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProbeError {
    /// It is no text.
    #[error("the PTX is no UTF-8 text")]
    Text,
    /// It has no such kernel.
    #[error("the PTX has no kernel {0}")]
    NoKernel(String),
    /// It is of another address size.
    #[error("the PTX has no line .address_size 64")]
    AddressSize,
    /// Its GPU is older than the instructions of the probes.
    #[error("the PTX is for sm_{0}; probes need sm_70 and PTX 6.2")]
    TooOld(u32),
    /// It ends inside of a function.
    #[error("the PTX ends inside of a function")]
    Unended,
    /// More places than are followed.
    #[error("the PTX has more than {MAX_SITES} places for probes")]
    TooMany,
    /// Names that all places would repeat take too much memory.
    #[error("the PTX has names too long for its many places for probes")]
    Names,
    /// It uses a name of the probes.
    #[error("the PTX has the name gpureplay_ already")]
    Name,
}
