// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bifrost shader cores: execution of decoded shaders.
//!
//! [`run`] executes a compute dispatch, [`draw`] vertices or fragments, [`analyse`] tells an analyser. Memory is an
//! [`AddressSpace`], work is spread over [`Threads`], a [`Control`] bounds it. Errors are hardware's faults.

#![deny(unsafe_code)]

#[macro_use]
mod macros;
#[macro_use]
mod vectors;

pub mod alu;
mod control;
mod core;
mod emit;
mod engine;
mod fault;
mod grid;
mod ir;
mod load;
mod mali;
mod operations;
mod optimise;
pub mod probe;
mod rows;
mod run;
mod space;
mod statistics;
#[cfg(test)]
mod testing;
mod threads;
mod words;

pub use control::{Control, JOB_COST, WorkLimit};
pub use fault::{FaultKind, ShaderFault};
pub use grid::{Cores, Grid, ThreadStorage, WorkgroupStorage};
pub use mali::bifrost::absent::{Absence, absence};
pub use mali::dispatch::{Architecture, Dispatch, Subnormals};
pub use mali::image;
pub use mali::run::{analyse, draw, run};
pub use mali::stage::{
    AttributeTable, Fragments, GUARD_BAND, Lookup, Packets, Preload, Stage, Tile, Triangle,
    Vertices,
};
pub use space::{Access, AddressSpace, MmuFault};
pub use statistics::Statistics;
pub use threads::Threads;
