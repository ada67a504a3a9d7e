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
pub struct Block {
    /// None fused.
    pub ops: Vec<MicroOp>,
    /// Where threads go on.
    pub next: Next,
    /// A branch, taken before `next`.
    pub branch: Option<Branch>,
    /// Threads wait for their work group after it.
    pub barrier: bool,
    /// Instructions of the multiply-add unit.
    pub fma: u64,
    /// Instructions of the add unit.
    pub add: u64,
    /// Messages' kinds, by number.
    pub messages: Vec<u8>,
    /// Per lane, in sixteenths of a clause.
    pub lane_cost: u32,
}

/// A fault of whoever executes the block.
#[derive(Debug)]
pub struct Trap {
    /// What happens.
    pub kind: FaultKind,
    /// For people.
    pub text: String,
}

impl From<MmuFault> for Trap {
    fn from(mmu: MmuFault) -> Trap {
        Trap {
            kind: FaultKind::Mmu(mmu),
            text: format!("cannot fetch instructions: {mmu}"),
        }
    }
}

/// Memory with code.
pub trait Code {
    /// As the shader cores fetch it.
    fn read(&mut self, address: u64, to: &mut [u8]) -> Result<(), MmuFault>;

    /// Notes a block's bytes, or those that could not be decoded.
    fn used(&mut self, address: u64, bytes: &[u8]);
}

/// An instruction set: gives the program clause numbers, constants and registers' meaning, never operations.
pub trait Translate: Any + Debug + Send + Sync {
    /// Whether both translate alike.
    fn is(&self, other: &dyn Translate) -> bool;

    /// Names of kinds of messages, by number: at most 16.
    fn messages(&self) -> &'static [&'static str];

    /// Alignment of a block's address, and the fault if it is violated.
    fn alignment(&self) -> (u64, &'static str);

    /// Translates the block at an address.
    fn block(
        &self,
        program: &mut Program,
        address: u64,
        code: &mut dyn Code,
    ) -> Result<Block, Trap>;
}
