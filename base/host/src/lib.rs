// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host work: whole files, paths [`beneath`] a directory, safe text, memory at a [`caller`]'s addresses, tables
//! ([`csv`]), [`statistics`].

#![forbid(unsafe_code)]

pub mod beneath;
pub mod caller;
mod cores;
pub mod csv;
mod escape;
mod file;
mod output;
pub mod statistics;

pub use cores::cores;
pub use escape::{Lines, escaped, escaped_lines, shown};
pub use file::{Existing, write_atomic, write_here, write_secret, write_unless, write_whole};
pub use output::{Output, output, output_was_closed};
