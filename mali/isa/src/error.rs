// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a clause.

use crate::info::Unit;
use crate::names::Op;
use core::fmt;

/// Why a clause does not decode. `tuple` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside the clause.
    Truncated {
        /// Offset of the missing 16-byte word.
        offset: usize,
    },
    /// A 16-byte word's tag is reserved or misplaced.
    Tag {
        /// Offset of the word.
        offset: usize,
        /// Tag.
        tag: u8,
    },
    /// Reserved bits or values in the header.
    Header {
        /// 45 bits.
        bits: u64,
    },
    /// A branch to before the shader, or to no multiple of 16.
    Target {
        /// Bytes from the start of the branching clause.
        distance: i32,
    },
    /// Reserved modifier nibbles of constants.
    Constants {
        /// First constant of the pair.
        index: u8,
        /// First nibble in bits 3:0, second in bits 7:4.
        nibbles: u8,
    },
    /// Reserved register control.
    Registers {
        /// Tuple.
        tuple: u8,
        /// 35 bits.
        bits: u64,
    },
    /// Unknown instruction word.
    Instruction {
        /// Tuple.
        tuple: u8,
        /// Unit.
        unit: Unit,
        /// Instruction word.
        bits: u32,
    },
    /// A source selects an unused port, a missing constant, or a reserved value.
    Source {
        /// Tuple.
        tuple: u8,
        /// Unit.
        unit: Unit,
        /// Instruction word.
        bits: u32,
        /// 0 is a.
        source: u8,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            DecodeError::Truncated { offset } => {
                write!(f, "the clause is cut off at byte {offset:#x}")
            }
            DecodeError::Tag { offset, tag } => write!(
                f,
                "clause word at byte {offset:#x} has invalid tag {tag:#04x}"
            ),
            DecodeError::Header { bits } => {
                write!(f, "clause header {bits:#013x} has reserved values")
            }
            DecodeError::Target { distance } => write!(
                f,
                "no clause can be at this target (branch by {distance:#x})"
            ),
            DecodeError::Constants { index, nibbles } => {
                write!(
                    f,
                    "constant {index} has the reserved modifiers {nibbles:#04x}"
                )
            }
            DecodeError::Registers { tuple, bits } => {
                write!(
                    f,
                    "tuple {tuple}: register block {bits:#011x} has a reserved control"
                )
            }
            DecodeError::Instruction { tuple, unit, bits } => {
                let name = if unit == Unit::Fma { "FMA" } else { "ADD" };
                write!(f, "tuple {tuple}: unknown {name} instruction {bits:#07x}")
            }
            DecodeError::Source {
                tuple,
                unit,
                bits,
                source,
            } => {
                let name = if unit == Unit::Fma { "FMA" } else { "ADD" };
                let letter = char::from(b'a' + (source & 3));
                write!(
                    f,
                    "tuple {tuple}: source {letter} of {name} instruction {bits:#07x} reads nothing"
                )
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// Why encoding fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The operation cannot read this source (0 is a).
    Source {
        /// Operation.
        op: Op,
        /// Source.
        source: u8,
    },
    /// An immediate is too large for its field.
    Immediate {
        /// Operation.
        op: Op,
        /// Immediate.
        immediate: u8,
    },
    /// No encoding has these modifiers and order.
    Modifiers {
        /// Operation.
        op: Op,
    },
    /// A clause has one to eight tuples.
    Tuples {
        /// Number.
        count: usize,
    },
    /// Too many constants for that many tuples, or one with bits 0-3.
    Constants {
        /// Number.
        count: usize,
    },
    /// Constants that share a word need the other order.
    ConstantOrder {
        /// First of the two.
        index: u8,
    },
    /// A header field is too large.
    Header,
    /// More than 35 bits.
    Registers {
        /// Tuple.
        tuple: u8,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EncodeError::Source { op, source } => {
                let letter = char::from(b'a' + (source & 3));
                write!(
                    f,
                    "{} cannot read its source {letter} from there",
                    op.info().name
                )
            }
            EncodeError::Immediate { op, immediate } => {
                let name = op
                    .info()
                    .immediates
                    .get(usize::from(immediate))
                    .map_or("immediate", |i| i.name);
                write!(f, "{}: {name} is too large", op.info().name)
            }
            EncodeError::Modifiers { op } => {
                write!(
                    f,
                    "{} has no encoding for these modifiers and this order of sources",
                    op.info().name
                )
            }
            EncodeError::Tuples { count } => write!(f, "a clause has 1 to 8 tuples, not {count}"),
            EncodeError::Constants { count } => {
                write!(f, "{count} constants do not fit into the clause")
            }
            EncodeError::ConstantOrder { index } => {
                write!(
                    f,
                    "constants {index} and {} must be exchanged",
                    u16::from(index) + 1
                )
            }
            EncodeError::Header => write!(f, "a field of the clause header is too large"),
            EncodeError::Registers { tuple } => write!(
                f,
                "the register block of tuple {tuple} has more than 35 bits"
            ),
        }
    }
}

impl core::error::Error for EncodeError {}
