// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records and replays a program on the driver's stand-in: plumbing, no kernels. `cargo xtask cuda device-test`
//! uses a GPU.
//!
//! The program is this test binary with [`app::VARIABLE`] set.
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
