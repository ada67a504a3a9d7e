// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least that a GPU can do, for recordings that say something about memory only.

pub(crate) use gpureplay_kit::jobs::{null_chain, null_job};
