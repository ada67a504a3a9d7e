// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signatures and packs, as written and changed.
#![allow(clippy::unwrap_used)]

mod mutation;
mod signatures;
