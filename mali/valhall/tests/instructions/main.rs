// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the Valhall instructions and of command streams: the tables, every word, the samples, another decoder.
#![allow(clippy::unwrap_used)]

mod cases;
mod golden;
mod lock_step;
mod samples;
mod sequencer;
mod streams;
#[path = "../../../isa/tests/instructions/support/mod.rs"]
mod support;
mod table;
mod traces;
mod words;
