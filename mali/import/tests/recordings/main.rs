// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings from silicon on the model.
#![allow(clippy::unwrap_used)]

mod common;

mod alexnet;
mod digits;
mod mnist;
mod mutations;
mod registers;
mod silicon;
