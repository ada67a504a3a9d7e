// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read from images, what is refused, and its cost.
#![allow(clippy::unwrap_used)]

mod bounded;
mod damaged;
mod golden;
