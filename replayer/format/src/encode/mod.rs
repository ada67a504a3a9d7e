// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds recordings.
//!
//! ```
//! use gpureplay_format::{Access, Builder, ElementType, Piece, Recording, RegionKind, SegmentKind, Tensor, TensorKind};
//!
//! let mut builder = Builder::new(0x7212_0000);
//! builder.identity(0x000, 0xffff_0000, 0x7212_0000);
//! builder.region(0x200_0000, 1, Access::READ_WRITE, RegionKind::Descriptors);
//! builder.region(0x201_0000, 4, Access::READ_WRITE, RegionKind::Data);
//! let input = builder.tensor(Tensor::dense("a", TensorKind::Input, ElementType::F32, &[32, 32], 0x201_0000));
//! builder.segment("setup", SegmentKind::Setup);
//! builder.upload(0x200_0000, &[0x11; 192]);
//! builder.segment("run", SegmentKind::Run);
//! builder.bind_input(input);
//! builder.rearm(0x200_0000);
//! builder.submit(1, 0x200_0000, 10_000_000);
//! let bytes = builder.finish()?;
//! assert_eq!(Recording::parse(&bytes).map(|recording| recording.segments().len()), Ok(2));
//! # Ok::<(), gpureplay_format::EncodeError>(())
//! ```

/// Jobs in all submissions of a trace or original recording.
///
/// A small file may submit a long chain again and again, with an action for each job. A network has some hundred jobs;
/// this is a thousand runs of one.
pub const MAX_SUBMITTED_JOBS: usize = 1 << 18;

mod compress;
mod draft;
mod file;
mod program;
mod tensor;

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use zerocopy::little_endian::{U16, U32, U64};

use crate::codes::{Access, RegionKind, SegmentKind};
use crate::layout::{
    ActionEntry, AxisEntry, FLAG_COHERENT, IdentityCheck, PieceEntry, Platform, Region, Segment,
    TensorEntry,
};
use crate::lz4::History;
use crate::view::ParseError;

pub use draft::{Draft, Step};
pub use file::assemble;
pub use tensor::{Axis, Piece, Tensor};

/// Drivers' own: clean and invalidate caches at start and end, start the MMU.
pub const DEFAULT_JOB_CONFIG: u16 = 0x3700;

/// A tensor of a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorId(pub u32);

/// Why a recording cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// Empty, or not printable ASCII without spaces.
    Name(String),
    /// Two tensors have this name.
    NameTwice(String),
    /// Action number `.0` comes before the first segment.
    NoSegment(usize),
    /// More than [`crate::MAX_RANK`] dimensions, no piece, or more than [`crate::MAX_AXES`] axes in one.
    Shape(String),
    /// Regions at these addresses overlap.
    RegionsOverlap(u64, u64),
    /// A table has more than 2^32 entries.
    TooLarge,
    /// Bytes of a launch's words that exceed 16 bits.
    Words(usize),
    /// The encoder's own output does not parse.
    Internal(ParseError),
}

impl core::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "name {name:?} cannot be stored: use printable ASCII without spaces"
            ),
            Self::NameTwice(name) => write!(f, "two tensors are called {name:?}"),
            Self::NoSegment(index) => write!(f, "action {index} comes before the first segment"),
            Self::Shape(name) => write!(
                f,
                "tensor {name:?} needs at most {} dimensions, at least one piece, and at most {} axes per piece",
                crate::MAX_RANK,
                crate::MAX_AXES
            ),
            Self::RegionsOverlap(first, second) => {
                write!(f, "regions at {first:#x} and {second:#x} overlap")
            }
            Self::TooLarge => f.write_str("a table has more than 2^32 entries"),
            Self::Words(bytes) => write!(f, "a launch has {bytes} bytes of words, more than 65535"),
            Self::Internal(error) => write!(f, "the encoder wrote a broken file: {error:?}"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// Collects and encodes a recording.
///
/// Regions, identity checks and tensors may come in any order; actions belong to the last segment. Only
/// [`Builder::finish`] checks.
#[derive(Debug)]
pub struct Builder {
    platform: Platform,
    identity: Vec<IdentityCheck>,
    regions: Vec<Region>,
    segments: Vec<Segment>,
    actions: Vec<ActionEntry>,
    tensors: Vec<TensorEntry>,
    pieces: Vec<PieceEntry>,
    axes: Vec<AxisEntry>,
    strings: Vec<u8>,
    data: Vec<u8>,
    history: History,
    matcher: compress::Matcher,
    /// Numbers of pages that set-up wrote; others are still zero.
    touched: BTreeSet<u64>,
    names: BTreeSet<String>,
    submitted: bool,
    error: Option<EncodeError>,
}

impl Builder {
    /// Starts a recording for this `GPU_ID` (product in bits 31:16).
    pub fn new(gpu_id: u32) -> Self {
        Self {
            platform: Platform::of(gpu_id),
            identity: Vec::new(),
            regions: Vec::new(),
            segments: Vec::new(),
            actions: Vec::new(),
            tensors: Vec::new(),
            pieces: Vec::new(),
            axes: Vec::new(),
            strings: Vec::new(),
            data: Vec::new(),
            history: History::new(),
            matcher: compress::Matcher::new(),
            touched: BTreeSet::new(),
            names: BTreeSet::new(),
            submitted: false,
            error: None,
        }
    }

    /// Whether GPU and CPU caches are coherent.
    pub fn coherent(&mut self, coherent: bool) {
        self.platform.flags = if coherent { FLAG_COHERENT } else { 0 };
    }

    /// Uses a GPU as another recording does.
    pub fn platform(&mut self, platform: Platform) {
        self.platform = platform;
    }

    /// Demands `read(register) & mask == value` of the replay's GPU.
    pub fn identity(&mut self, register: u32, mask: u32, value: u32) {
        self.identity.push(IdentityCheck {
            register: U32::new(register),
            mask: U32::new(mask),
            value: U32::new(value & mask),
        });
    }

    /// Adds pages of GPU memory, zero when set-up starts.
    pub fn region(&mut self, va: u64, pages: u32, access: Access, kind: RegionKind) {
        self.regions.push(Region {
            va: U64::new(va),
            pages: U32::new(pages),
            access: access.0,
            kind: kind.code(),
            zero: U16::ZERO,
        });
    }

    /// Set-up segments come first, then run, then finish.
    pub fn segment(&mut self, name: &str, kind: SegmentKind) {
        let name = self.intern(name);
        self.history.clear();
        self.segments.push(Segment {
            name: U32::new(name),
            kind: kind.code(),
            zero: [0; 3],
            first_action: U32::new(self.actions.len() as u32),
            actions: U32::ZERO,
            data: U64::new(self.data.len() as u64),
        });
    }

    fn intern(&mut self, name: &str) -> u32 {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.fail(EncodeError::Name(name.into()));
        }
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        offset
    }

    fn fail(&mut self, error: EncodeError) {
        self.error.get_or_insert(error);
    }
}
