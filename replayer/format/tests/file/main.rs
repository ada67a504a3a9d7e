// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the encoder writes, and what a reader says of other files.
#![allow(clippy::unwrap_used)]

mod blocks;
mod damage;
mod encoder;
mod mutation;
