// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of Valhall's instructions and streams.
#![allow(clippy::unwrap_used)]

mod cases;
mod golden;
mod lock_step;
mod samples;
mod sequencer;
mod streams;
#[path = "../instructions/support/mod.rs"]
mod support;
mod table;
mod traces;
mod words;
