// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files from the encoder, and others.
#![allow(clippy::unwrap_used)]

mod blocks;
mod damage;
mod encoder;
mod mutation;
