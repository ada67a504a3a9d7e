// SPDX-License-Identifier: MIT OR Apache-2.0
//! What micro-operations do.
//!
//! [`loops`] is arithmetic; [`singles`] and [`halves`] are hand-written multiply-adds, [`carries`] 64-bit sums,
//! [`planned`] accesses with known addresses. [`memory`], [`uniform`], [`atomic`], [`image`], [`texture`] and
//! [`warp`] look beyond their lane; [`graphics`] is not for compute.

mod addresses;
pub(crate) mod ahead;
pub(crate) mod atomic;
pub(crate) mod carries;
pub(crate) mod graphics;
pub(crate) mod halves;
pub(crate) mod image;
pub(crate) mod loops;
pub(crate) mod memory;
pub(crate) mod planned;
pub(crate) mod singles;
pub(crate) mod tables;
pub(crate) mod texture;
pub(crate) mod uniform;
pub(crate) mod warp;
