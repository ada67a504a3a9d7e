// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smallest job, for recordings about memory only.

pub(crate) use gpureplay_kit::jobs::{null_chain, null_job};
