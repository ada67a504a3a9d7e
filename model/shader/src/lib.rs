// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine that executes shaders, for any family of GPUs.
//!
//! A family is a [`core::Family`], and emits micro-operations by [`emit`]; [`launch`] executes its dispatches. Memory
//! is an [`AddressSpace`], work is spread over [`Threads`], a [`Control`] bounds it. Errors are hardware's faults.

#![deny(unsafe_code)]

#[macro_use]
mod macros;
#[macro_use]
mod vectors;

pub mod alu;
mod control;
pub mod core;
pub mod emit;
mod engine;
mod fault;
mod grid;
pub mod ir;
mod load;
pub mod operations;
mod optimise;
pub mod probe;
pub mod rows;
mod run;
mod space;
mod statistics;
#[cfg(test)]
mod testing;
mod threads;
pub mod words;

pub use control::{Control, JOB_COST, WorkLimit};
pub use fault::{FaultKind, ShaderFault};
pub use grid::{Cores, Grid, ThreadStorage, WorkgroupStorage};
pub use run::launch;
pub use space::{Access, AddressSpace, MmuFault};
pub use statistics::Statistics;
pub use threads::Threads;
