// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that names Mali: both instruction sets, descriptors, drawing.

pub(crate) mod bifrost;
pub mod image;
pub(crate) mod operations;
pub(crate) mod stage;
pub(crate) mod valhall;
