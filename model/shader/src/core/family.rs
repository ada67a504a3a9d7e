// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seam between a family of GPUs and the engine.

use std::any::Any;

use super::{Core, Tlb, Trouble, UniformBuffer};
use crate::ir::Translate;
use crate::rows::Rows;

/// What only its family knows of a dispatch. Each host thread has its own, with what it has read so far.
pub trait Family: Any + Send {
    /// Its instruction set.
    fn isa(&self) -> &'static dyn Translate;

    /// Lanes that see one another: 4, 8 or 16.
    fn warp_lanes(&self) -> u32;

    /// Registers of a thread's place.
    fn ids(&self) -> Ids;

    /// A copy for another host thread, which has read nothing.
    fn again(&self) -> Box<dyn Family>;

    /// Appends what shaders read behind the push uniforms.
    fn add_uniforms(&self, words: &mut Vec<u32>);

    /// How vertices and fragments start; each is a work group.
    fn begin(&self) -> Option<Begin>;

    /// `None`: loads give zero.
    fn uniform_buffer(
        &mut self,
        index: u32,
        read: &mut Tlb<'_>,
    ) -> Result<Option<UniformBuffer>, Trouble>;

    /// Bytes of a texel in memory, from conversion descriptor and modifiers.
    fn texel_bytes(&self, conversion: u32, m: u16) -> Result<usize, Trouble>;
}

/// First registers with ids when a thread starts.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    /// Place in the work group: x in the low half, y in the high half.
    pub local_xy: u16,
    /// Its z.
    pub local_z: u16,
    /// Work group, in x, y, z.
    pub workgroup: u16,
    /// Thread, in x, y, z.
    pub global: u16,
}

/// Fills registers of `count` threads from `first` on; returns the lanes that start, if not all.
pub type Begin = fn(
    rows: &mut Rows,
    core: &mut Core<'_>,
    first: u64,
    count: u32,
) -> Result<Option<u64>, Trouble>;
