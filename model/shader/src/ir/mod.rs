// SPDX-License-Identifier: MIT OR Apache-2.0
//! The intermediate form: clauses of micro-operations on rows.

mod block;
mod clause;
pub mod micro;
mod program;
pub mod special;

pub use block::{Block, Code, Translate, Trap};
pub use clause::{Branch, Condition, Next, Target};
pub(crate) use clause::{Clause, State};
pub use program::{Constant, Program};
