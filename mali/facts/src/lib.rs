// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Mali GPUs find in memory, and what they are: descriptors, job chains, page tables, [`registers`], products.
//!
//! Each field, limit and encoding is declared once, here. `cargo xtask docs` makes tables of
//! `docs/reference/descriptors.md` from it; `tests/kernel/main.rs` compares the kernel modules' headers with it.
//! Instructions are in `mali-isa`.
//!
//! ```
//! use mali_facts::{Draw, JobHeader, JobType, job, follow};
//!
//! // A compute job at 0x40, alone in its chain.
//! let mut memory = [0u8; 0x100];
//! memory[0x40 + 16] = 1 | (JobType::Compute as u8) << 1;
//! let read = |va: u64, to: &mut [u8]| match memory.get(va as usize..va as usize + to.len()) {
//!     Some(bytes) => { to.copy_from_slice(bytes); true }
//!     None => false,
//! };
//! let chain = follow(&read, 0x40);
//! let jobs: Vec<_> = chain.jobs(&read).collect();
//! assert_eq!(jobs[0].job_type(), Some(JobType::Compute));
//! assert_eq!(jobs[0].address + job::COMPUTE_DRAW, 0x80);
//! ```
//!
//! Sources: Mesa's descriptions of v6 and v7 (`panfrost/genxml`), Arm's published kernel driver, and recordings of
//! Mali-G71 hardware.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod access;
mod architecture;
mod chain;
mod compute;
mod drawing;
mod field;
pub mod firmware;
pub mod job;
mod launch;
pub mod page_table;
mod pixel_format;
mod product;
mod products;
mod profile;
pub mod registers;
mod resource;
mod state;
mod streams;
pub mod texel;
mod text;
pub mod valhall;
pub mod walk;

pub use access::Access;
pub use architecture::Architecture;
pub use chain::{Chain, ChainEnd, Job, LONGEST_CHAIN, Memory, follow};
pub use compute::{ComputeJob, bytes};
pub use drawing::{
    Blend, DrawFlags, FragmentPayload, FragmentState, FramebufferParameters, Primitive,
    RENDER_TARGET_OFFSET, RenderTarget, TILE_SIDE, TILER_STATE_OFFSET, TilerContext, TilerHeap,
    TilerPointer, VertexState, Viewport, blend_mode,
};
pub use field::{Field, Kind, Layout};
pub use job::{CacheFlush, ComputeParameters, Draw, Invocation, JobHeader, JobType, WriteValue};
pub use launch::Launch;
pub use pixel_format::PixelFormat;
pub use product::Product;
pub use products::{BOARDS, Board, PROFILES};
pub use profile::{Profile, Source};
pub use resource::{
    Attribute, AttributeBuffer, AttributeBuffer3d, Sampler, Surface, Texture, UniformBuffer,
    attribute_type, descriptor_type, mipmap_mode, texel_ordering, texture_dimension, wrap_mode,
};
pub use state::{BLEND_OFFSET, LocalStorage, RendererState};
pub use streams::{STREAM_BOARDS, STREAM_GPUS, StreamGpu, StreamStatus};
pub use text::Text;

/// Bifrost's; see also [`valhall::LAYOUTS`].
pub static LAYOUTS: &[&Layout] = &[
    JobHeader::LAYOUT,
    WriteValue::LAYOUT,
    CacheFlush::LAYOUT,
    Invocation::LAYOUT,
    ComputeParameters::LAYOUT,
    Draw::LAYOUT,
    RendererState::LAYOUT,
    UniformBuffer::LAYOUT,
    LocalStorage::LAYOUT,
    Attribute::LAYOUT,
    AttributeBuffer::LAYOUT,
    AttributeBuffer3d::LAYOUT,
    Texture::LAYOUT,
    Surface::LAYOUT,
    Sampler::LAYOUT,
    Primitive::LAYOUT,
    TilerPointer::LAYOUT,
    TilerContext::LAYOUT,
    TilerHeap::LAYOUT,
    DrawFlags::LAYOUT,
    VertexState::LAYOUT,
    FragmentState::LAYOUT,
    Blend::LAYOUT,
    Viewport::LAYOUT,
    FragmentPayload::LAYOUT,
    FramebufferParameters::LAYOUT,
    RenderTarget::LAYOUT,
];

/// Multiple of 64, without flags in low bits.
#[inline]
pub const fn descriptor_address(pointer: u64) -> u64 {
    pointer & !63
}

/// Multiple of 16, without flags in low bits.
#[inline]
pub const fn clause_address(pointer: u64) -> u64 {
    pointer & !15
}
