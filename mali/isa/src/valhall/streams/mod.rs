// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams of architecture 10: a table; a sequencer without memory; the walk of a stream with constant
//! operands.
//!
//! An instruction is one 64-bit word with the opcode in its highest byte. There are 96 registers of 32 bits; an
//! even one and the next are a pair. A stream is an address and a length; it calls others.

mod effect;
mod field;
mod instruction;
mod sequencer;
mod table;
mod walk;

pub use effect::{Compute, Condition, Effect, Fault, Sync, SyncKind, Transfer};
pub use field::{Field, Kind};
pub use instruction::{Instruction, WORD_BYTES, text};
pub use sequencer::{CALLS, REGISTERS, SAVED_WORDS, SCOREBOARDS, Sequencer};
pub use table::{Asynchronous, Op, Row};
pub use walk::{WalkError, walk};
