// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library, as embedding programs use it.
#![allow(clippy::unwrap_used)]

mod cut;
mod device;
mod pictures;
mod session;
mod signals;
mod song;
mod state;
mod streams;
mod values;
