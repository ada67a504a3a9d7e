// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signatures and packs as they are written, and changed ones.
#![allow(clippy::unwrap_used)]

mod mutation;
mod signatures;
