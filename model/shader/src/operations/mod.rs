// SPDX-License-Identifier: MIT OR Apache-2.0
//! What micro-operations do: functions of rows, and of rows and memory.
//!
//! [`loops`] are arithmetic, lane by lane; [`singles`] and [`halves`] have multiply-adds written by hand, [`carries`] sums of 64 bits. [`planned`] has loads and stores
//! whose addresses are known before. [`memory`], [`uniform`],
//! [`atomic`], [`image`], [`texture`] and [`warp`] have the instructions that look beyond their own lane, [`graphics`] those of
//! other stages than compute.

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
