// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verifier and engine on a tiny GPU.
#![allow(clippy::unwrap_used)]

mod support;

mod engine;
mod faults;
mod launch;
mod limits;
mod middleware;
mod mutation;
mod soundness;
mod tables;
mod whole;
mod wrappers;
