// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and decodes the recorder's raw trace.
//!
//! It has register accesses with order, context and time, interrupts, and pages of GPU memory that changed around each
//! job. The C header `driver-patch/recorder/gpureplay_trace.h` defines it; [`layout`] mirrors it.
//!
//! [`Reader`] trusts no length; [`Check`] finds what makes a trace incomplete.

#![forbid(unsafe_code)]

mod check;
pub mod layout;
pub mod note;
mod passing;
mod reader;
mod record;
mod writer;

pub use check::{Check, Problem};
pub use passing::Submissions;
pub use reader::{Reader, TraceError};
pub use record::{
    Begin, Context, Driver, ErrorCode, Event, Line, Phase, Record, RecordType, RegionFlags,
};
pub use writer::Writer;

/// Bytes of a page.
pub const PAGE_SIZE: usize = 4096;
