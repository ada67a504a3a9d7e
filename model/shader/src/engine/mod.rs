// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: batches of lanes that execute micro-operations.
//!
//! A host thread is a [`worker`]: it takes sets of work groups and gives their threads places in [`batch`]es of up to 64
//! lanes. A batch executes clauses of micro-operations ([`micro`]) on [`rows`], one row for each register; loops over
//! lanes ([`simd`]) are what takes the time. Lanes that diverge form groups, and the group at the lowest address runs.
//! [`halves`] has half-precision multiply-adds, [`fuse`] makes one of several multiply-adds.  [`memory`], [`uniform`], [`atomic`], [`image`], [`texture`] and [`warp`] have the instructions that look beyond their own lane, [`graphics`] those of other stages than compute.

mod addresses;
pub(crate) mod atomic;
pub(crate) mod batch;
pub(crate) mod core;
pub(crate) mod fuse;
pub(crate) mod graphics;
pub(crate) mod halves;
pub(crate) mod image;
pub(crate) mod memory;
pub(crate) mod micro;
pub(crate) mod rows;
pub(crate) mod simd;
pub(crate) mod texture;
pub(crate) mod tlb;
pub(crate) mod uniform;
pub(crate) mod warp;
#[cfg(target_arch = "x86_64")]
mod wide;
pub(crate) mod worker;
