// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shape of the instruction table's entries.

use crate::names::{Mnemonic, Modifier, Op};
use crate::product::{ProductEvidence, Products};

/// Executes one half of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Fused multiply-add, 23-bit words. Executes first.
    Fma,
    /// Additions and messages, 20-bit words.
    Add,
}

impl Unit {
    /// Bits per word.
    pub const fn width(self) -> u32 {
        match self {
            Unit::Fma => 23,
            Unit::Add => 20,
        }
    }

    /// In disassembly: `*` for FMA, `+` for ADD.
    pub const fn mark(self) -> char {
        match self {
            Unit::Fma => '*',
            Unit::Add => '+',
        }
    }
}

/// What the table says about an operation.
#[derive(Debug)]
pub struct OpInfo {
    /// Operation.
    pub op: Op,
    /// What it computes, without the unit.
    pub mnemonic: Mnemonic,
    /// Unit.
    pub unit: Unit,
    /// Such as `FADD.f32`.
    pub name: &'static str,
    /// In a line; sources are called a, b, c and d.
    pub does: &'static str,
    /// Source a first.
    pub sources: &'static [SourceInfo],
    /// Sorted by name.
    pub modifiers: &'static [ModifierInfo],
    /// In the instruction word.
    pub immediates: &'static [ImmediateInfo],
    /// Encodings.
    pub encodings: &'static [Encoding],
    /// If it sends one.
    pub message: Option<Message>,
    /// Use of staging registers.
    pub staging: Option<Staging>,
    /// Must be in the last tuple of a clause.
    pub last: bool,
    /// Has a result, maybe only for t, t0 or t1.
    pub result: bool,
    /// Reads a table of the special-function unit.
    pub table: bool,
    /// No compiler is known to emit it.
    pub unused: bool,
    /// Only in 64-bit clauses, whose register blocks name pairs.
    pub wide: bool,
    /// For the encoding.
    pub evidence: Evidence,
    /// Others raise the fault of an invalid encoding.
    pub products: Products,
    /// For the products.
    pub product_evidence: ProductEvidence,
}

/// 3-bit selector in the instruction word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Lowest bit.
    pub start: u8,
    /// Bit n: selector n is allowed.
    pub allowed: u8,
}

/// Modifier of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModifierInfo {
    /// Modifier.
    pub modifier: Modifier,
    /// `None` if that depends on the encoding.
    pub position: Option<BitField>,
    /// By encoded number (`None` is reserved). Without a position: all possible values.
    pub options: &'static [Option<u8>],
    /// Left out in disassembly.
    pub default: Option<u8>,
}

/// Number in the instruction word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImmediateInfo {
    /// Such as `texture_index`.
    pub name: &'static str,
    /// Place.
    pub position: BitField,
}

/// Bits of an instruction word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Lowest bit.
    pub start: u8,
    /// Bits.
    pub size: u8,
}

impl BitField {
    /// Value in `word`, shifted down.
    pub const fn get(self, word: u32) -> u32 {
        (word >> self.start) & ((1 << self.size) - 1)
    }

    /// Shifts into place; surplus bits are dropped.
    pub const fn put(self, value: u32) -> u32 {
        (value & ((1 << self.size) - 1)) << self.start
    }
}

/// A word fits if `word & mask == exact`, sources a and b are in the given order, and nothing is reserved.
#[derive(Debug)]
pub struct Encoding {
    /// Fixed bits' values.
    pub exact: u32,
    /// Fixed bits.
    pub mask: u32,
    /// Of the selectors of sources a and b, as numbers.
    pub order: Option<Order>,
    /// Implied modifiers: index in [`OpInfo::modifiers`] and value.
    pub fixed: &'static [(u8, u8)],
    /// Each holds one or several modifiers.
    pub fields: &'static [Field],
}

/// Bit field whose values stand for values of modifiers.
#[derive(Debug)]
pub struct Field {
    /// Place.
    pub position: BitField,
    /// Indices in [`OpInfo::modifiers`].
    pub modifiers: &'static [u8],
    /// By the field's value; `None` or missing is reserved.
    pub values: &'static [Option<&'static [u8]>],
}

/// Of the selectors of sources a and b; commutative operations store a bit in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// a < b
    Less,
    /// a <= b
    LessOrEqual,
    /// a > b
    Greater,
    /// a >= b
    GreaterOrEqual,
}

impl Order {
    /// Whether selectors are in this order.
    pub const fn holds(self, a: u8, b: u8) -> bool {
        match self {
            Order::Less => a < b,
            Order::LessOrEqual => a <= b,
            Order::Greater => a > b,
            Order::GreaterOrEqual => a >= b,
        }
    }
}

/// Message types of a clause header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Varying interpolation.
    Varying,
    /// Attribute or image access.
    Attribute,
    /// Texture access.
    Tex,
    /// Texture access with an interpolated coordinate.
    Vartex,
    /// Load from memory.
    Load,
    /// Store to memory.
    Store,
    /// Atomic operation.
    Atomic,
    /// Work-group barrier.
    Barrier,
    /// Blending.
    Blend,
    /// Tile buffer access.
    Tile,
    /// Depth and stencil output.
    ZStencil,
    /// Alpha test.
    Atest,
    /// Job management.
    Job,
    /// None: the clause has 64-bit operations.
    Wide,
}

impl Message {
    /// By number.
    pub const ALL: [Message; 14] = [
        Message::Varying,
        Message::Attribute,
        Message::Tex,
        Message::Vartex,
        Message::Load,
        Message::Store,
        Message::Atomic,
        Message::Barrier,
        Message::Blend,
        Message::Tile,
        Message::ZStencil,
        Message::Atest,
        Message::Job,
        Message::Wide,
    ];

    /// Of a header's `message_type` (0: none); `Err` with a reserved number.
    pub const fn from_number(number: u8) -> Result<Option<Message>, u8> {
        Ok(Some(match number {
            0 => return Ok(None),
            1 => Message::Varying,
            2 => Message::Attribute,
            3 => Message::Tex,
            4 => Message::Vartex,
            5 => Message::Load,
            6 => Message::Store,
            7 => Message::Atomic,
            8 => Message::Barrier,
            9 => Message::Blend,
            10 => Message::Tile,
            12 => Message::ZStencil,
            13 => Message::Atest,
            14 => Message::Job,
            15 => Message::Wide,
            other => return Err(other),
        }))
    }

    /// Number in the header.
    pub const fn number(self) -> u8 {
        match self {
            Message::Varying => 1,
            Message::Attribute => 2,
            Message::Tex => 3,
            Message::Vartex => 4,
            Message::Load => 5,
            Message::Store => 6,
            Message::Atomic => 7,
            Message::Barrier => 8,
            Message::Blend => 9,
            Message::Tile => 10,
            Message::ZStencil => 12,
            Message::Atest => 13,
            Message::Job => 14,
            Message::Wide => 15,
        }
    }

    /// Name in disassembly.
    pub const fn name(self) -> &'static str {
        match self {
            Message::Varying => "vary",
            Message::Attribute => "attr",
            Message::Tex => "tex",
            Message::Vartex => "vartex",
            Message::Load => "load",
            Message::Store => "store",
            Message::Atomic => "atomic",
            Message::Barrier => "barrier",
            Message::Blend => "blend",
            Message::Tile => "tile",
            Message::ZStencil => "z_stencil",
            Message::Atest => "atest",
            Message::Job => "job",
            Message::Wide => "64bit",
        }
    }
}

/// Registers from the header's staging register on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staging {
    /// It reads them.
    pub read: bool,
    /// It writes them.
    pub write: bool,
    /// How many.
    pub count: StagingCount,
}

/// Number of staging registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagingCount {
    /// Always that many.
    Words(u8),
    /// `vector_size` components of the register format.
    Format,
    /// A descriptor operand says it.
    Descriptor,
}

/// Why an encoding and its meaning are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Source.
    pub source: EvidenceSource,
    /// Confidence.
    pub confidence: Confidence,
}

/// Where the knowledge of an encoding comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceSource {
    /// Mesa's published description.
    Documented,
    /// Shaders of Arm's compiler for real silicon.
    Silicon,
    /// From its encoding group's structure; not seen.
    Structure,
}

/// How sure an encoding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// Named, executed, results checked; or documented.
    Certain,
    /// From structure or data flow.
    Likely,
    /// Guess.
    Guess,
}
