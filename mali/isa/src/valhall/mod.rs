// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valhall instructions (architectures 9 and 10) and [command streams](streams).
//!
//! An instruction is one 64-bit word, without clauses: nothing is shared with Bifrost.

mod assemble;
mod disassemble;
mod field;
mod instruction;
mod limits;
mod row;
mod shader;
mod source;
pub mod streams;
mod table;
mod values;

pub use assemble::{AssembleError, assemble};
pub use field::*;
pub use instruction::{Destination, Flow, Instruction, Staging};
pub use limits::Broken;
pub use row::{Registers, Row, Secondary, Unit};
pub use shader::{LONGEST_BLOCK, MAX_WORDS, Shader, ShaderError, WORD_BYTES};
pub use source::{CONSTANTS, Code, Kind, Operand, Special};
pub use table::Op;
pub use values::Values;
