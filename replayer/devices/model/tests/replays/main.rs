// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings replayed on the GPU model.
#![allow(clippy::unwrap_used)]

mod lend;
mod vecadd;
mod write_value;
