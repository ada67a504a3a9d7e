// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices around devices: to watch one.

mod trace;

pub use trace::{Call, Trace};
