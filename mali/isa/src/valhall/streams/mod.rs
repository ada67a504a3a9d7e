// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams of architecture 10.
//!
//! An instruction is one 64-bit word, its opcode in the highest byte. Of 96 registers of 32 bits, an even one and the
//! next are a pair. A stream is an address and a length; it calls others.

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
