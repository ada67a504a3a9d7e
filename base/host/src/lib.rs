// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every part of the project does on a host, whatever it replays: files that appear whole or not at all, paths that stay
//! [`beneath`] a directory, text of strangers' files that is safe to show, memory at a [`caller`]'s addresses, tables ([`csv`]), and what repeated measurements say
//! ([`statistics`]).

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
