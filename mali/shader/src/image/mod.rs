// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images.
//!
//! A closure `FnMut(address, &mut [u8]) -> Result<(), E>` reads memory.

pub mod address;
mod codec;
pub mod descriptor;
pub mod register;
pub mod sample;

pub(crate) use mali_facts::texel::{Kind, Texel, TexelFormat};

pub use address::{Extent, Layout, Plane};
pub use codec::Texels;
pub use descriptor::{Dimension, ImageBuffer, Sampler, Texture, Wrap};
pub use register::RegisterFormat;
pub use sample::{Coordinates, Level, Lookup, fetch_texel, gather, sample};
