// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that are written and read back, and manifests that are refused.
#![allow(clippy::unwrap_used)]

mod damaged;
mod recording;
mod runs;
