// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts probe calls into PTX, before accesses and at basic blocks.
//!
//! Texts may be hostile: nothing panics, and [`MAX_SITES`] bounds additions. Probes write no register of the
//! kernel. Source: PTX ISA, chapters 4, 7 and 9.
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
    /// No text.
    #[error("the PTX is no UTF-8 text")]
    Text,
    /// No such kernel.
    #[error("the PTX has no kernel {0}")]
    NoKernel(String),
    /// Another address size.
    #[error("the PTX has no line .address_size 64")]
    AddressSize,
    /// For the probes' instructions.
    #[error("the PTX is for sm_{0}; probes need sm_70 and PTX 6.2")]
    TooOld(u32),
    /// Ends inside of a function.
    #[error("the PTX ends inside of a function")]
    Unended,
    /// Too many places.
    #[error("the PTX has more than {MAX_SITES} places for probes")]
    TooMany,
    /// Repeated names take too much memory.
    #[error("the PTX has names too long for its many places for probes")]
    Names,
    /// It uses a probe's name.
    #[error("the PTX has the name gpureplay_ already")]
    Name,
}
