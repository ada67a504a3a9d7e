// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of a recording: little-endian, unaligned.
//!
//! Fields called `zero` must be zero.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::MAX_RANK;

/// Starts every recording.
pub const MAGIC: [u8; 8] = *b"GPUREPLY";
/// Changes when an older reader would misread the file.
pub const MAJOR: u16 = 2;
/// Changes when sections, codes or fields are added. A file has the smallest for its own: 0, 1 with a state
/// ([`crate::TensorKind::State`]), 2 with unused cores ([`Header::unused_cores`]), 3 for another family than
/// `FAMILY_MALI` ([`Header::family`]) or with launches ([`crate::Opcode::Launch`]).
pub const MINOR: u16 = 3;
/// Mali with a job manager, the only family of older versions.
pub const FAMILY_MALI: u16 = 0;
/// Mali with command streams.
pub const FAMILY_STREAMS: u16 = 2;
/// In every file of this version.
pub const SECTIONS: usize = 9;
/// GPU and CPU caches were coherent.
pub const FLAG_COHERENT: u32 = 1;
/// No value for this weight: bind it before the first run.
pub const TENSOR_EXTERNAL: u8 = 1;

/// First 64 bytes of a recording.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`MAJOR`].
    pub major: U16,
    /// At most [`MINOR`] for the codes of this version.
    pub minor: U16,
    /// Entries in the section table after the header.
    pub section_count: U32,
    /// Bytes of the whole file.
    pub file_length: U64,
    /// Mali's `GPU_ID`; bits 31:16 are the product.
    pub gpu_id: U32,
    /// [`FLAG_COHERENT`].
    pub flags: U32,
    /// Over header and section table, with this field zero.
    pub checksum: U64,
    /// Cores that no job runs on, as bits of `SHADER_PRESENT`. A reader that does not know the field must refuse
    /// the file: threads of more cores than there is storage for would share it. Zero unless `FAMILY_MALI`.
    pub unused_cores: U32,
    /// [`FAMILY_MALI`], or a number of docs/reference/format.md. Readers refuse unknown ones.
    pub family: U16,
    /// Reserved.
    pub zero: [u8; 18],
}

impl Header {
    /// What the header says of the GPU.
    pub const fn platform(&self) -> Platform {
        Platform {
            gpu_id: self.gpu_id.get(),
            flags: self.flags.get(),
            unused_cores: self.unused_cores.get(),
            family: self.family.get(),
        }
    }
}

/// Recording's GPU, and how it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// [`Header::gpu_id`].
    pub gpu_id: u32,
    /// [`Header::flags`].
    pub flags: u32,
    /// [`Header::unused_cores`].
    pub unused_cores: u32,
    /// [`Header::family`].
    pub family: u16,
}

impl Platform {
    /// Mali with all cores and without coherent caches.
    pub const fn of(gpu_id: u32) -> Self {
        Self {
            gpu_id,
            flags: 0,
            unused_cores: 0,
            family: FAMILY_MALI,
        }
    }
}

/// Entry of the section table (32 bytes).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SectionEntry {
    /// [`crate::Section`], ascending.
    pub kind: U32,
    /// Reserved.
    pub zero: U32,
    /// A multiple of 8: the end of the section before it, rounded up.
    pub offset: U64,
    /// Without the zeros up to the next multiple of 8.
    pub length: U64,
    /// Includes the filling zeros.
    pub checksum: U64,
}

/// `read(register) & mask == value` must hold (12 bytes).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IdentityCheck {
    /// Register offset in bytes.
    pub register: U32,
    /// Compared bits.
    pub mask: U32,
    /// Their value.
    pub value: U32,
}

/// Pages of GPU memory (16 bytes). Regions ascend and are disjoint; pages start as zero.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Region {
    /// GPU address, a multiple of the page size.
    pub va: U64,
    /// Number of pages, at least 1.
    pub pages: U32,
    /// [`crate::Access`].
    pub access: u8,
    /// [`crate::RegionKind`].
    pub kind: u8,
    /// Reserved.
    pub zero: U16,
}

/// A part of the program (24 bytes). Segments cover all actions in order, set-up first, finish last.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Segment {
    /// Offset in `strings`.
    pub name: U32,
    /// [`crate::SegmentKind`].
    pub kind: u8,
    /// Reserved.
    pub zero: [u8; 3],
    /// Index of the first action.
    pub first_action: U32,
    /// Number of actions.
    pub actions: U32,
    /// Offset of the first upload in `data`.
    pub data: U64,
}

/// Action (16 bytes); [`crate::Action`] names the operands.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ActionEntry {
    /// [`crate::Opcode`].
    pub op: u8,
    /// Small operand.
    pub a: u8,
    /// 16-bit operand.
    pub b: U16,
    /// 32-bit operand.
    pub c: U32,
    /// 64-bit operand.
    pub d: U64,
}

/// Named array (40 bytes).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TensorEntry {
    /// Offset in `strings`.
    pub name: U32,
    /// [`crate::TensorKind`].
    pub kind: u8,
    /// [`crate::ElementType`].
    pub element: u8,
    /// Number of dimensions.
    pub rank: u8,
    /// [`TENSOR_EXTERNAL`] or 0.
    pub flags: u8,
    /// Slowest dimension first (C order); unused entries are zero.
    pub shape: [U32; MAX_RANK],
    /// First entry in `pieces`.
    pub first_piece: U32,
    /// At least 1.
    pub pieces: U32,
}

/// Maps a part of a tensor to GPU memory (20 bytes).
///
/// For indices i0, i1, … below the extents of the axes, element `element + Σ i·element_stride` of the array in C
/// order lies at GPU address `va + Σ i·byte_stride`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PieceEntry {
    /// GPU address of the first element.
    pub va: U64,
    /// First element's index in C order.
    pub element: U32,
    /// First entry in `axes`.
    pub first_axis: U32,
    /// Slowest first; 0 for a single element.
    pub axes: U32,
}

/// One loop of a piece (12 bytes).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AxisEntry {
    /// Steps, at least 1.
    pub extent: U32,
    /// Elements per step.
    pub element_stride: U32,
    /// Bytes of GPU memory per step.
    pub byte_stride: U32,
}
