// SPDX-License-Identifier: MIT OR Apache-2.0
//! Micro-operations into fewer and faster ones that do the same.

pub(crate) mod ahead;
mod flow;
pub(crate) mod fuse;
mod join;
mod late;
pub(crate) mod specialise;
