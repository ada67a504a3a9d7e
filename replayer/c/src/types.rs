// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and structures that C sees.

use std::ffi::c_char;

use gpureplay_library::{ElementType as LibraryElement, Phase, TensorKind as LibraryKind, Timing};

/// How a call ended; numbers as the command's exit codes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The arguments make no sense for this recording.
    Usage = 2,
    /// The recording is damaged or not allowed, or is no recording.
    Recording = 3,
    /// A file is missing or does not fit.
    Input = 4,
    /// The device cannot be used, or the replay failed. The GPU was reset; the next run starts afresh.
    Device = 5,
    /// A result could not be written.
    Output = 6,
    /// A bug in the library.
    Panic = 7,
}

/// Role of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorKind {
    /// Must be bound before a run.
    Input = 0,
    /// Can be read after a run.
    Output = 1,
    /// Has a value in the recording or in a file beside it, and may be bound.
    Weight = 2,
    /// Computed by a layer; may be read after it, and replaced.
    Intermediate = 3,
    /// Changed by a run, and kept for the next.
    State = 4,
}

/// Element type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ElementType {
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

/// A tensor. Elements are little-endian, in C order, without gaps.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription {
    /// Valid until the recording is closed.
    pub name: *const c_char,
    /// Role.
    pub kind: TensorKind,
    /// Element type.
    pub element: ElementType,
    /// Size in bytes.
    pub bytes: usize,
    /// Number of extents.
    pub rank: usize,
    /// Extents, slowest dimension first; those beyond `rank` are 0.
    pub shape: [u64; 6],
}

impl From<LibraryKind> for TensorKind {
    fn from(kind: LibraryKind) -> Self {
        match kind {
            LibraryKind::Input => Self::Input,
            LibraryKind::Output => Self::Output,
            LibraryKind::Weight => Self::Weight,
            LibraryKind::Intermediate => Self::Intermediate,
            LibraryKind::State => Self::State,
        }
    }
}

impl From<LibraryElement> for ElementType {
    fn from(dtype: LibraryElement) -> Self {
        match dtype {
            LibraryElement::F32 => Self::F32,
            LibraryElement::F16 => Self::F16,
            LibraryElement::U8 => Self::U8,
            LibraryElement::I8 => Self::I8,
            LibraryElement::U16 => Self::U16,
            LibraryElement::I16 => Self::I16,
            LibraryElement::U32 => Self::U32,
            LibraryElement::I32 => Self::I32,
            LibraryElement::U64 => Self::U64,
            LibraryElement::I64 => Self::I64,
            LibraryElement::F64 => Self::F64,
            LibraryElement::Bool => Self::Bool,
        }
    }
}

impl From<ElementType> for LibraryElement {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::F32 => Self::F32,
            ElementType::F16 => Self::F16,
            ElementType::U8 => Self::U8,
            ElementType::I8 => Self::I8,
            ElementType::U16 => Self::U16,
            ElementType::I16 => Self::I16,
            ElementType::U32 => Self::U32,
            ElementType::I32 => Self::I32,
            ElementType::U64 => Self::U64,
            ElementType::I64 => Self::I64,
            ElementType::F64 => Self::F64,
            ElementType::Bool => Self::Bool,
        }
    }
}

impl ElementType {
    /// C may give any number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        LibraryElement::ALL
            .iter()
            .map(|dtype| Self::from(*dtype))
            .find(|element| *element as u32 == number)
    }
}

/// Session options. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// "best", "model", "model:GPU", "panfrost", "panthor", "kbase", "nano", "nano:shared", "devmem", "devmem:BOARD" or "optee"; null is the best one.
    pub device: *const c_char,
    /// Host threads of the model, up to 512; 0 is one per processor.
    pub threads: u32,
    /// Messages of the model on standard error: 0 none, 1 faults, 2 also resets and jobs, 3 everything.
    pub verbose: u32,
    /// Attempts after a failed one, per run.
    pub retries: u32,
    /// Not 0: replay on a GPU other than the recorded one. Results may be wrong.
    pub any_gpu: u32,
}

/// Times of a session's last run in seconds, and its device use.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunTiming {
    /// Loading, if the run had to.
    pub load: f64,
    /// The run itself, all attempts. The rest beside the four phases below is the engine's own.
    pub run: f64,
    /// Bytes that every run restores.
    pub restore: f64,
    /// Inputs into GPU memory.
    pub bind: f64,
    /// Chains, from start until their end is known.
    pub device: f64,
    /// Outputs out of GPU memory.
    pub read: f64,
    /// Attempts after the first.
    pub retries: u32,
    /// Submitted chains.
    pub chains: u32,
}

impl From<&Timing> for RunTiming {
    fn from(timing: &Timing) -> Self {
        let phase = |phase| timing.phase(phase).as_secs_f64();
        Self {
            load: timing.load.as_secs_f64(),
            run: timing.run.as_secs_f64(),
            restore: phase(Phase::Restore),
            bind: phase(Phase::Bind),
            device: phase(Phase::Device),
            read: phase(Phase::Read),
            retries: timing.retries,
            chains: timing.chains,
        }
    }
}
