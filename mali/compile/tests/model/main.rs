// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real jobs on the GPU model.
#![allow(clippy::unwrap_used)]

mod app;
mod copies;
mod driver;

mod layers;
mod notes;
mod refusals;
mod replays;
mod state;
mod two_runs;
