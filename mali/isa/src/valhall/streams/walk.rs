// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a stream's dispatches before it runs, from constant operands.

use core::fmt::{self, Display, Formatter};

use super::effect::{Compute, Effect, Fault};
use super::instruction::Instruction;
use super::sequencer::Sequencer;
use super::table::Op;

/// Why a stream cannot be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkError {
    /// No memory at an instruction's address.
    Unreadable(u64),
    /// An instruction cannot be executed.
    Fault {
        /// Address.
        at: u64,
        /// Cause.
        fault: Fault,
    },
    /// An instruction's effect depends on memory.
    Dynamic {
        /// Address.
        at: u64,
        /// Instruction.
        op: Op,
    },
    /// More instructions than allowed.
    TooLong(u32),
}

impl Display for WalkError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WalkError::Unreadable(at) => write!(f, "{at:#x}: no memory"),
            WalkError::Fault { at, fault } => write!(f, "{at:#x}: {fault}"),
            WalkError::Dynamic { at, op } => {
                let why = match op {
                    Op::StoreState => "stores a time, as a queue with profiling asks for",
                    _ => "depends on memory",
                };
                write!(f, "{at:#x}: {} {why}", op.row().name)
            }
            WalkError::TooLong(limit) => write!(f, "more than {limit} instructions"),
        }
    }
}

impl core::error::Error for WalkError {}

/// Walks at most `limit` instructions of `bytes` bytes. `read` gives a word; `dispatch` gets each dispatch and its
/// instruction's address.
///
/// # Errors
/// The stream cannot be walked; dispatches before that place were given.
pub fn walk(
    address: u64,
    bytes: u32,
    limit: u32,
    mut read: impl FnMut(u64) -> Option<u64>,
    mut dispatch: impl FnMut(u64, &Compute),
) -> Result<(), WalkError> {
    let mut queue = Sequencer::undefined();
    let started = queue.start(address, bytes);
    started.map_err(|fault| WalkError::Fault { at: address, fault })?;
    let mut left = limit;
    while let Some(at) = queue.address() {
        left = left.checked_sub(1).ok_or(WalkError::TooLong(limit))?;
        let word = read(at).ok_or(WalkError::Unreadable(at))?;
        let effect = queue.step(word);
        match effect.map_err(|fault| WalkError::Fault { at, fault })? {
            Effect::None | Effect::Flush => {}
            Effect::Compute(compute) => dispatch(at, &compute),
            // Stores may change the stream, and waits may never end.
            Effect::Load(_) | Effect::Store(_) | Effect::Sync(_) | Effect::StoreState { .. } => {
                let op = Instruction::decode(word).map_or(Op::Nop, Instruction::op);
                return Err(WalkError::Dynamic { at, op });
            }
        }
    }
    Ok(())
}
