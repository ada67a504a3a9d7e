// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of Bifrost instructions.
#![allow(clippy::unwrap_used)]

mod support;

mod clauses;
mod samples;
mod silicon;
mod words;
