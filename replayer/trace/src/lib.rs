// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's raw trace, read and decoded.
//!
//! A raw trace is what the kernel module streams while an app runs: register accesses with their order, context and
//! time, interrupts, and the pages of GPU memory that changed around each job. The definition is the C header
//! `driver-patch/recorder/gpureplay_trace.h`; [`layout`] mirrors it.
//!
//! [`Reader`] yields one record after the other from any stream and never trusts a length. [`Check`] holds the rules
//! that make a trace complete: it starts with BEGIN, no sequence number is missing, no ERROR record is inside, it ends with
//! END. [`note`] is what an OpenCL layer says between register accesses. [`Writer`] makes traces, for tests and for recorders outside of the kernel.

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

/// Bytes of a GPU page and of the contents of a PAGE record.
pub const PAGE_SIZE: usize = 4096;
