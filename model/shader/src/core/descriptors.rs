// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors that a host thread has read in a dispatch.

use super::UniformBuffer;
use crate::mali::image::{ImageBuffer, Sampler, Texture};

#[derive(Default)]
pub(crate) struct Descriptors {
    pub(crate) textures: Vec<Option<Texture>>,
    pub(crate) samplers: Vec<Option<Sampler>>,
    pub(crate) images: Vec<Option<ImageBuffer>>,
    /// Those of resource tables, by handle.
    pub(crate) named_textures: Vec<(u32, Texture)>,
    pub(crate) named_samplers: Vec<(u32, Sampler)>,
    pub(crate) named_buffers: Vec<(u32, UniformBuffer)>,
}
