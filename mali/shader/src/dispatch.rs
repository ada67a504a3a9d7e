// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job asks of shader cores.

use gpureplay_shader::Grid;
use mali_facts::Architecture;
use mali_isa::Product;

/// Treatment of subnormal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subnormals {
    /// As they are.
    #[default]
    Kept,
    /// Singles become zeros of their sign.
    SinglesFlushed,
    /// Singles and halves become zeros of their sign.
    Flushed,
}

/// Threads, with what shaders reach by number. Addresses are virtual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// The threads; their shader begins at a multiple of 16, on Valhall of 8.
    pub grid: Grid,
    /// GPU's generation.
    pub architecture: Architecture,
    /// Executes only its instructions; `None`, and on Valhall: all known.
    pub product: Option<Product>,
    /// On Valhall; Bifrost's clauses say it.
    pub subnormals: Subnormals,
    /// Table's address, 8 bytes each.
    pub uniform_buffers: u64,
    /// Entries.
    pub uniform_buffer_count: u32,
    /// Descriptors' address, 8 bytes each.
    pub attributes: u64,
    /// Attributes.
    pub attribute_count: u32,
    /// Descriptors' address, 16 bytes each.
    pub attribute_buffers: u64,
    /// Descriptors' address.
    pub textures: u64,
    /// Textures.
    pub texture_count: u32,
    /// Descriptors' address, 32 bytes each.
    pub samplers: u64,
    /// Samplers.
    pub sampler_count: u32,
    /// Tables' address, 16 bytes each; on Valhall for buffers, textures and samplers.
    pub resources: u64,
    /// Resource tables.
    pub resource_count: u32,
}
