// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: batches of lanes that execute micro-operations.

pub(crate) mod atomic;
pub(crate) mod batch;
pub(crate) mod core;
pub(crate) mod image;
pub(crate) mod memory;
pub(crate) mod micro;
pub(crate) mod rows;
pub(crate) mod simd;
pub(crate) mod tlb;
pub(crate) mod warp;
pub(crate) mod worker;
