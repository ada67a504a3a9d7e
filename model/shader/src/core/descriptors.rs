// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors that a host thread has read in a dispatch.

use crate::image::{ImageBuffer, Sampler, Texture};

/// Descriptors that a host thread has read in this dispatch, by their numbers.
#[derive(Default)]
pub(crate) struct Descriptors {
    pub(crate) textures: Vec<Option<Texture>>,
    pub(crate) samplers: Vec<Option<Sampler>>,
    pub(crate) images: Vec<Option<ImageBuffer>>,
}
