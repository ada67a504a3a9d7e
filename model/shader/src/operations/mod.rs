// SPDX-License-Identifier: MIT OR Apache-2.0
//! What micro-operations do.

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
