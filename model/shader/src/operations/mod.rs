// SPDX-License-Identifier: MIT OR Apache-2.0
//! What micro-operations do.
//!
//! [`loops`] is arithmetic; [`singles`] and [`halves`] are hand-written multiply-adds, [`carries`] 64-bit sums,
//! [`planned`] accesses with known addresses. [`memory`], [`uniform`] and [`atomic`] look beyond their lane.

mod addresses;
pub(crate) mod ahead;
pub(crate) mod atomic;
pub(crate) mod carries;
pub(crate) mod halves;
pub(crate) mod loops;
pub(crate) mod memory;
pub(crate) mod planned;
pub(crate) mod singles;
pub(crate) mod sink;
pub(crate) mod uniform;
