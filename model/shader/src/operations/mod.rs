// SPDX-License-Identifier: MIT OR Apache-2.0
//! What micro-operations do.
//!
//! [`loops`] is arithmetic; `singles` and [`halves`] are hand-written multiply-adds, `carries` 64-bit sums,
//! `planned` accesses with known addresses. [`memory`], [`uniform`] and [`atomic`] look beyond their lane.

mod addresses;
pub(crate) mod ahead;
pub mod atomic;
pub(crate) mod carries;
pub mod halves;
pub mod loops;
pub mod memory;
pub(crate) mod planned;
pub(crate) mod singles;
pub mod sink;
pub mod uniform;
