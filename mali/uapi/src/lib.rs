// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel drivers of Mali GPUs, seen from an app.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod accesses;
pub mod kbase;
pub mod panfrost;
pub mod panthor;
