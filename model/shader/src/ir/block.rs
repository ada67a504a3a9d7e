// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seam between instruction sets and the rest.

use std::any::Any;
use std::fmt::Debug;

use super::clause::{Branch, Next};
use super::micro::MicroOp;
use super::program::Program;
use crate::{FaultKind, MmuFault};

/// A clause, or words up to a branch.
#[derive(Debug)]
pub(crate) struct Block {
    /// None fused.
    pub(crate) ops: Vec<MicroOp>,
    pub(crate) next: Next,
    pub(crate) branch: Option<Branch>,
    /// Threads wait for their work group after it.
    pub(crate) barrier: bool,
    pub(crate) fma: u64,
    pub(crate) add: u64,
    /// Numbers of their kinds.
    pub(crate) messages: Vec<u8>,
    /// Per lane, in sixteenths of a clause.
    pub(crate) lane_cost: u32,
}

#[derive(Debug)]
pub(crate) struct Trap {
    pub(crate) kind: FaultKind,
    pub(crate) text: String,
}

impl From<MmuFault> for Trap {
    fn from(mmu: MmuFault) -> Trap {
        Trap {
            kind: FaultKind::Mmu(mmu),
            text: format!("cannot fetch instructions: {mmu}"),
        }
    }
}

pub(crate) trait Code {
    fn read(&mut self, address: u64, to: &mut [u8]) -> Result<(), MmuFault>;

    /// A block's bytes, or a fault.
    fn used(&mut self, address: u64, bytes: &[u8]);
}

/// An instruction set: gives the program clause numbers, constants and registers' meaning, never operations.
pub(crate) trait Translate: Any + Debug + Send + Sync {
    /// Whether both translate alike.
    fn is(&self, other: &dyn Translate) -> bool;

    /// Names of kinds of messages, by number: at most 16.
    fn messages(&self) -> &'static [&'static str];

    /// Alignment of a block's address, and the fault if it is violated.
    fn alignment(&self) -> (u64, &'static str);

    fn block(
        &self,
        program: &mut Program,
        address: u64,
        code: &mut dyn Code,
    ) -> Result<Block, Trap>;
}
