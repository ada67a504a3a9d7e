// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small driver submits real jobs to the GPU model and logs what it does; the trace is compiled, and the recording is
//! replayed with other inputs.
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
