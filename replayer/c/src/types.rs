// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and structures that C sees.

use std::ffi::c_char;

use gpureplay_library::{DType, TensorKind};

/// How a call ended. The numbers are those of the command's exit codes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The arguments make no sense for this recording.
    Usage = 2,
    /// The recording is damaged, not allowed, or not a recording.
    Recording = 3,
    /// An input or another file is missing or does not fit.
    Input = 4,
    /// The device could not be used, or the replay failed on it. The GPU was reset; the next run starts afresh.
    Device = 5,
    /// A result could not be written.
    Output = 6,
    /// A bug in the library.
    Panic = 7,
}

/// Part of a tensor in the computation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Must be bound before a run.
    Input = 0,
    /// Can be read after a run.
    Output = 1,
    /// Has a value in the recording or in a file beside it, and may be bound.
    Weight = 2,
    /// Computed by a layer; may be read after it, and replaced.
    Intermediate = 3,
}

/// Type of elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Type {
    F32 = 0,
    F16 = 1,
    U8 = 2,
    I8 = 3,
    U16 = 4,
    I16 = 5,
    U32 = 6,
    I32 = 7,
    U64 = 8,
    I64 = 9,
    F64 = 10,
    Bool = 11,
}

/// A tensor of a recording. Elements are little-endian, in C order, without gaps.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription {
    /// Name; valid until the recording is closed.
    pub name: *const c_char,
    /// Its part in the computation.
    pub kind: Kind,
    /// Type of its elements.
    pub element: Type,
    /// Size of its elements in bytes.
    pub bytes: usize,
    /// Number of extents.
    pub rank: usize,
    /// Extents, slowest dimension first; those beyond `rank` are 0.
    pub shape: [u64; 6],
}

impl From<TensorKind> for Kind {
    fn from(kind: TensorKind) -> Self {
        match kind {
            TensorKind::Input => Self::Input,
            TensorKind::Output => Self::Output,
            TensorKind::Weight => Self::Weight,
            TensorKind::Intermediate => Self::Intermediate,
        }
    }
}

impl From<DType> for Type {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::F32,
            DType::F16 => Self::F16,
            DType::U8 => Self::U8,
            DType::I8 => Self::I8,
            DType::U16 => Self::U16,
            DType::I16 => Self::I16,
            DType::U32 => Self::U32,
            DType::I32 => Self::I32,
            DType::U64 => Self::U64,
            DType::I64 => Self::I64,
            DType::F64 => Self::F64,
            DType::Bool => Self::Bool,
        }
    }
}
