// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read from images of code, what is refused, and what it may cost.
#![allow(clippy::unwrap_used)]

mod bounded;
mod damaged;
mod golden;
