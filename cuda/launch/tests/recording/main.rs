// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings written and read, and refusals.
#![allow(clippy::unwrap_used)]

mod damaged;
mod recording;
mod runs;
