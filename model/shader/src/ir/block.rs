// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seam between instruction sets and the rest: code goes in, a block of micro-operations comes out.

use super::clause::{Branch, Next};
use super::micro::MicroOp;
use super::program::Program;
use crate::{FaultKind, MmuFault};

/// What a translator makes of a clause, or of a run of words up to a branch.
#[derive(Debug)]
pub(crate) struct Block {
    /// Micro-operations, none fused.
    pub(crate) ops: Vec<MicroOp>,
    pub(crate) next: Next,
    pub(crate) branch: Option<Branch>,
    /// Whether threads wait for their work group after the block.
    pub(crate) barrier: bool,
    /// Operations of a lane that executes the block, by unit.
    pub(crate) fma: u64,
    pub(crate) add: u64,
    pub(crate) messages: Vec<mali_isa::Message>,
    /// What each lane costs that it executes by itself, in sixteenths of a clause.
    pub(crate) lane_cost: u32,
}

/// Why code cannot be executed.
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

    /// Says which bytes a block was made from, or a fault.
    fn used(&mut self, address: u64, bytes: &[u8]);
}

/// An instruction set. It gives the program numbers of clauses and constants, and what its registers show; never operations.
pub(crate) trait Translate {
    /// What the address of a block is a multiple of, and the fault of one that is not.
    fn alignment(&self) -> (u64, &'static str);

    /// Reads and translates the block at an address.
    fn block(
        &self,
        program: &mut Program,
        address: u64,
        code: &mut dyn Code,
    ) -> Result<Block, Trap>;
}
