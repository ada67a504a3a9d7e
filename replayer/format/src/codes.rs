// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbered kinds in a recording.

use crate::named;

named! {
    /// A section of the file, in the order in which sections follow each other.
    ///
    /// `Header` stands for the header together with the section table and has no table entry of its own.
    Section;

    /// File header and section table.
    Header = 0, "header";
    /// What the GPU must be: array of [`crate::layout::IdentityCheck`].
    Identity = 1, "identity";
    /// GPU memory: array of [`crate::layout::Region`].
    Regions = 2, "regions";
    /// Parts of the program: array of [`crate::layout::Segment`].
    Segments = 3, "segments";
    /// The program: array of [`crate::layout::ActionEntry`].
    Actions = 4, "actions";
    /// Named arrays: array of [`crate::layout::TensorEntry`].
    Tensors = 5, "tensors";
    /// Where parts of tensors lie: array of [`crate::layout::PieceEntry`].
    Pieces = 6, "pieces";
    /// Loop nests from element to address: array of [`crate::layout::AxisEntry`].
    Axes = 7, "axes";
    /// Names, each ended by a zero byte.
    Strings = 8, "strings";
    /// Bytes of uploads and words of launches, in the order of the actions that use them, except after a `Seek`.
    Data = 9, "data";
}

named! {
    /// What a region of GPU memory holds; the verifier's rules depend on it.
    RegionKind;

    /// Buffers; the only kind that tensors may lie in.
    Data = 0, "data";
    /// Job descriptors, uniforms and everything that points at memory; the only kind that job chains may start in.
    Descriptors = 1, "descriptors";
    /// Shader code; the only kind that may be executable.
    Code = 2, "code";
    /// Thread-local and workgroup-local storage; nobody outside the GPU reads or writes it.
    Scratch = 3, "scratch";
}

named! {
    /// When a segment runs.
    SegmentKind;

    /// Once, when a recording is opened.
    Setup = 0, "setup";
    /// Once per inference.
    Run = 1, "run";
    /// Once, before the GPU is given back.
    Finish = 2, "finish";
}

named! {
    /// The part that a tensor plays.
    TensorKind;

    /// Must be bound before every run.
    Input = 0, "input";
    /// Can be read after the run.
    Output = 1, "output";
    /// Has a value from set-up that may be replaced while the recording is open.
    Weight = 2, "weight";
    /// Between two layers: can be read after its segment, and replaced before the next.
    Intermediate = 3, "intermediate";
    /// A run changes it, and the next run starts from what it left. Its first value is what set-up puts there.
    State = 4, "state";
}

named! {
    /// Type of a tensor's elements.
    ElementType;

    /// IEEE 754 single precision.
    F32 = 0, "f32";
    /// IEEE 754 half precision.
    F16 = 1, "f16";
    /// Unsigned byte, also of asymmetrically quantised tensors.
    U8 = 2, "u8";
    /// Signed byte, also of quantised tensors.
    I8 = 3, "i8";
    /// Unsigned 16-bit integer.
    U16 = 4, "u16";
    /// Signed 16-bit integer.
    I16 = 5, "i16";
    /// Unsigned 32-bit integer.
    U32 = 6, "u32";
    /// Signed 32-bit integer.
    I32 = 7, "i32";
    /// Unsigned 64-bit integer.
    U64 = 8, "u64";
    /// Signed 64-bit integer.
    I64 = 9, "i64";
    /// IEEE 754 double precision.
    F64 = 10, "f64";
    /// One byte, 0 or 1.
    Bool = 11, "bool";
}

impl ElementType {
    /// Bytes of one element: 1, 2, 4 or 8.
    pub const fn size(self) -> u32 {
        1 << (Self::LOGARITHMS >> (self as u32 * 2) & 3)
    }

    /// Logarithms, two bits per code: smaller than a table.
    const LOGARITHMS: u32 = {
        let mut all = 0;
        let mut at = 0;
        while at < Self::ALL.len() {
            let logarithm = match Self::ALL[at] {
                Self::U8 | Self::I8 | Self::Bool => 0,
                Self::F16 | Self::U16 | Self::I16 => 1,
                Self::F32 | Self::U32 | Self::I32 => 2,
                Self::U64 | Self::I64 | Self::F64 => 3,
            };
            all |= logarithm << (Self::ALL[at] as u32 * 2);
            at += 1;
        }
        all
    };
}

named! {
    /// How the bytes of an upload are stored.
    Encoding;

    /// As they are.
    Raw = 0, "raw";
    /// One LZ4 block of at most a page, with the previous uploads of its segment as dictionary ([`crate::lz4`]).
    Lz4 = 1, "lz4";
}

named! {
    /// Operation of an action; [`crate::Action`] describes the operands.
    Opcode;

    /// Write a register.
    Write = 1, "write";
    /// Put bytes into GPU memory.
    Upload = 2, "upload";
    /// Put one repeated byte into GPU memory.
    Fill = 3, "fill";
    /// Make a job header ready for its next run.
    Rearm = 4, "rearm";
    /// Start a job chain and wait for its end.
    Submit = 5, "submit";
    /// Write a tensor's elements into GPU memory.
    BindInput = 6, "bind_input";
    /// Read a tensor's elements from GPU memory.
    BindOutput = 7, "bind_output";
    /// Take the bytes of the following uploads from another place of the data section.
    Seek = 8, "seek";
    /// Start the work that words describe and wait for its end. Not for Mali with a job manager.
    Launch = 9, "launch";
}

/// Bits of [`crate::layout::Region::access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access(pub u8);

impl Access {
    /// The GPU may read.
    pub const READ: Self = Self(1);
    /// The GPU may write.
    pub const WRITE: Self = Self(2);
    /// The GPU may execute.
    pub const EXECUTE: Self = Self(4);
    /// Buffers, descriptors, scratch.
    pub const READ_WRITE: Self = Self(3);
    /// Code.
    pub const READ_EXECUTE: Self = Self(5);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl core::ops::BitOr for Access {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
