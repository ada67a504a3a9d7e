// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs as they are checked, linked and split.
#![allow(clippy::unwrap_used)]

mod job_types;
mod linked_layers;
mod linked_recordings;
mod linked_status;
mod many_jobs;
mod many_textures;
mod moved_code;
mod shipped;
mod status;
