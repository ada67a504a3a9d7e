// SPDX-License-Identifier: MIT OR Apache-2.0
//! Client of the trusted application.
//!
//! A [`Client`] session takes a signed pack, then values; the secure side checks.
//! `replayer/devices/optee/client/gpureplay_tee.c` is the same in C, on libteec.

mod abi;
mod application;
mod client;
mod entries;
mod error;
mod shared;

pub use application::{MOST_RECORDING_BYTES, MOST_TENSOR_BYTES, MOST_TENSORS};
pub use client::{Canceller, Client};
pub use error::Error;
