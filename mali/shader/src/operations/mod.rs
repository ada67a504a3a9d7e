// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations that read descriptors or other lanes.

pub(crate) mod graphics;
pub(crate) mod image;
pub(crate) mod tables;
pub(crate) mod texture;
pub(crate) mod warp;
