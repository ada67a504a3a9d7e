// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders that are run.
#![allow(clippy::unwrap_used)]

mod support;

mod addresses;
mod long;
mod operations;
mod random;
mod rare;
mod valhall;
mod vectors;
