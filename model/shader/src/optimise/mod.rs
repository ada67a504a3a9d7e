// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fewer and faster micro-operations that do the same.

pub(crate) mod ahead;
mod flow;
pub(crate) mod fuse;
mod join;
mod late;
pub(crate) mod specialise;
