// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's drivers of Mali GPUs, seen from an app: requests and structures of [`panfrost`], [`panthor`] and [`kbase`], what they
//! tell of the GPU, and the register [`accesses`] that a request leads to.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod accesses;
pub mod kbase;
pub mod panfrost;
pub mod panthor;
