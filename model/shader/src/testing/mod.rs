// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs, and machines for them.

mod bare;
mod copies;
mod machine;
mod writer;

pub(crate) use copies::{Copies, copies, last};
pub(crate) use machine::{EDGE, Flat, Machine, NOWHERE};
pub(crate) use writer::{PAGES, UNIFORMS, Writer};
