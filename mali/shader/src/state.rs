// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host thread's part of a dispatch.

use std::any::Any;

use gpureplay_shader::FaultKind;
use gpureplay_shader::core::{Core, Tlb, Trouble, UniformBuffer};
use mali_facts::{Architecture, PixelFormat};

use super::dispatch::Dispatch;
use super::image::{ImageBuffer, RegisterFormat, Sampler, TexelFormat, Texture};
use super::stage::Stage;

pub(crate) struct State {
    pub(crate) dispatch: Dispatch,
    pub(crate) stage: Option<Stage>,
    /// Thread in the first lane, when drawing.
    pub(crate) first: u64,
    pub(super) uniform_buffers: Vec<Option<UniformBuffer>>,
    pub(crate) textures: Vec<Option<Texture>>,
    pub(crate) samplers: Vec<Option<Sampler>>,
    pub(crate) images: Vec<Option<ImageBuffer>>,
    /// Of resource tables, by handle.
    pub(crate) named_textures: Vec<(u32, Texture)>,
    pub(crate) named_samplers: Vec<(u32, Sampler)>,
    pub(super) named_buffers: Vec<(u32, UniformBuffer)>,
}

fn foreign() -> Trouble {
    let text = "the dispatch is of another family of GPUs";
    Trouble::new(FaultKind::InvalidEncoding, 0, text)
}

impl State {
    pub(super) fn new(dispatch: &Dispatch, stage: Option<&Stage>) -> State {
        let buffers = dispatch.uniform_buffer_count.min(256) as usize;
        State {
            dispatch: dispatch.clone(),
            stage: stage.cloned(),
            first: 0,
            uniform_buffers: vec![None; buffers],
            textures: Vec::new(),
            samplers: Vec::new(),
            images: Vec::new(),
            named_textures: Vec::new(),
            named_samplers: Vec::new(),
            named_buffers: Vec::new(),
        }
    }

    pub(crate) fn of<'c>(core: &'c Core<'_>) -> Result<&'c State, Trouble> {
        let family: &dyn Any = &*core.family;
        family.downcast_ref().ok_or_else(foreign)
    }

    pub(crate) fn of_mut<'c>(core: &'c mut Core<'_>) -> Result<&'c mut State, Trouble> {
        Ok(State::with_memory(core)?.0)
    }

    pub(crate) fn with_memory<'c, 's>(
        core: &'c mut Core<'s>,
    ) -> Result<(&'c mut State, &'c mut Tlb<'s>), Trouble> {
        let family: &mut dyn Any = &mut *core.family;
        let state = family.downcast_mut().ok_or_else(foreign)?;
        Ok((state, &mut core.read))
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.dispatch.architecture == Architecture::V6
    }

    pub(crate) fn has_resource_tables(&self) -> bool {
        self.dispatch.architecture.has_resource_tables()
    }

    /// `None`: plain words.
    pub(crate) fn conversion(
        &self,
        word: u32,
    ) -> Result<(Option<TexelFormat>, RegisterFormat), Trouble> {
        let invalid = |text: String| Trouble::new(FaultKind::InvalidData, 0, text);
        let format = RegisterFormat::from_encoding(word >> 24 & 7).ok_or_else(|| {
            invalid(format!(
                "conversion descriptor {word:#010x} has no register format"
            ))
        })?;
        if word >> 22 & 1 == 1 {
            return Ok((None, format));
        }
        let pixel = TexelFormat::parse(PixelFormat(word & 0x3f_ffff), self.is_v6())
            .map_err(|error| invalid(error.to_string()))?;
        Ok((Some(pixel), format))
    }
}
