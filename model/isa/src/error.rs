// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a clause.

use crate::info::Unit;
use core::fmt;

/// Why a clause does not decode. `tuple` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside the clause.
    Truncated {
        /// Offset of the 16-byte word that is missing.
        offset: usize,
    },
    /// The tag of a 16-byte word is reserved or stands in the wrong place.
    Tag {
        /// Offset of the word.
        offset: usize,
        /// Its tag.
        tag: u8,
    },
    /// Reserved bits or values in the header.
    Header {
        /// The header's 45 bits.
        bits: u64,
    },
    /// A reserved register control.
    Registers {
        /// Which tuple.
        tuple: u8,
        /// The register block's 35 bits.
        bits: u64,
    },
    /// The instruction word is no known encoding.
    Instruction {
        /// Which tuple.
        tuple: u8,
        /// Which unit.
        unit: Unit,
        /// The instruction word.
        bits: u32,
    },
    /// A source selects a read port that reads nothing, a constant that the clause does not have, or a reserved value.
    Source {
        /// Which tuple.
        tuple: u8,
        /// Which unit.
        unit: Unit,
        /// The instruction word.
        bits: u32,
        /// Which source (0 is a).
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
