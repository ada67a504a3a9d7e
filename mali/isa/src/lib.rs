// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bifrost instructions: one table, its decoder, encoder and disassembler. [`valhall`] has those of Valhall.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clause;
mod constants;
mod decode;
mod disassemble;
mod error;
mod fau;
mod header;
mod identity;
mod info;
mod instruction;
mod layout;
mod names;
mod product;
mod registers;
mod shader;
mod table;
pub mod valhall;
mod word;

pub use clause::*;
pub use constants::fau_index;
pub use decode::*;
pub use disassemble::{ClauseText, InstructionText};
pub use error::*;
pub use fau::*;
pub use identity::Identity;
pub use info::*;
pub use instruction::*;
pub use layout::{MAX_WORDS, WORD_BYTES};
pub use names::*;
pub use product::*;
pub use registers::*;
pub use shader::*;
pub use word::*;
