// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings written and read back, and refused manifests.
#![allow(clippy::unwrap_used)]

mod damaged;
mod recording;
mod runs;
