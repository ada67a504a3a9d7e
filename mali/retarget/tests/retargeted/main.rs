// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refusals, and the shipped recordings.
#![allow(clippy::unwrap_used)]

mod mutants;
mod shipped;
