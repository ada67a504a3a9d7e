// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bifrost instructions: one table, and from it decoder, encoder and disassembler.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clause;
mod error;
mod fau;
mod info;
mod instruction;
mod registers;
mod table;

pub use clause::*;
pub use error::*;
pub use fau::*;
pub use info::*;
pub use instruction::*;
pub use registers::*;
pub use table::*;
