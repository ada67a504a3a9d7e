// SPDX-License-Identifier: MIT OR Apache-2.0
//! The intermediate form: clauses of micro-operations on rows.

mod block;
mod clause;
pub(crate) mod micro;
mod program;
pub(crate) mod special;

pub(crate) use block::{Block, Code, Translate, Trap};
pub(crate) use clause::{Branch, Clause, Condition, Next, State, Target};
pub(crate) use program::{Constant, Program};
