// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of the trusted application that replays: packs and tensors go to the secure world through Linux's TEE driver.
//!
//! [`Client`] holds one session. It hands over a signed pack ([`Client::load`]) and then values for each run ([`Client::run`]);
//! what is checked, is checked on the secure side. `replayer/devices/optee/client/gpureplay_tee.c` does the same in C, on libteec.

mod abi;
mod application;
mod client;
mod entries;
mod error;
mod shared;

pub use application::{MOST_RECORDING_BYTES, MOST_TENSOR_BYTES, MOST_TENSORS};
pub use client::{Canceller, Client};
pub use error::Error;
