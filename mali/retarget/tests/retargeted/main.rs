// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each rule refuses, and what becomes of the shipped recordings.
#![allow(clippy::unwrap_used)]

mod mutants;
mod shipped;
