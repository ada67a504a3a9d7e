// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that watches another.

mod trace;

pub use trace::{Call, Trace};
