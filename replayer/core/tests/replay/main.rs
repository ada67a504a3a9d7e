// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verifier and engine on a GPU of few lines.
#![allow(clippy::unwrap_used)]

mod support;

mod engine;
mod faults;
mod launch;
mod limits;
mod soundness;
mod whole;
mod wrappers;
