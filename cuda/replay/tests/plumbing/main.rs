// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program is recorded and replayed, end to end, on a stand-in for the driver. This proves plumbing, never kernels: what
//! "runs" is a host function of the same name. `cargo xtask cuda device-test` does the same on a GPU.
//!
//! The program is this test binary itself, started again with [`app::VARIABLE`] set.
#![allow(clippy::unwrap_used)]

mod analyse;
mod app;
mod embedded;
mod faults;
mod graphs;
mod hostile;
mod large;
mod outputs;
mod parts;
mod record;
mod replace;
mod replay;
#[path = "../../../../replayer/cli/tests/command/schema_check.rs"]
mod schema_check;
mod stage;
mod strict;
mod tune;
mod turns;
mod weights;
mod whole;
mod workbench;
