// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of instructions: words, clauses, shaders of compilers, documentation.
#![allow(clippy::unwrap_used)]

mod support;

mod clauses;
mod samples;
mod silicon;
mod words;
