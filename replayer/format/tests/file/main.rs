// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file as the encoder writes it, and what a reader says of others.
#![allow(clippy::unwrap_used)]

mod blocks;
mod damage;
mod encoder;
mod mutation;
