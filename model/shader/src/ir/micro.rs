// SPDX-License-Identifier: MIT OR Apache-2.0
//! Micro-operations: instructions with operands and modifiers resolved.

use crate::core::{Core, Done};
use crate::rows::Rows;

#[derive(Clone, Copy, Debug)]
pub(crate) struct MicroOp {
    pub(crate) run: Run,
    /// Destination row; for messages the first staging register.
    pub(crate) d: u16,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u16,
    pub(crate) e: u16,
    /// As the function wants them.
    pub(crate) m: u32,
    /// Source rows read, from `a` on.
    pub(crate) sources: u8,
    /// For optimisations.
    pub(crate) kind: Kind,
    /// Part of a joined clause.
    pub(crate) part: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Single `a * b + c`, rounded to even, without modifiers.
    MultiplyAdd,
    /// Half-precision `a * b + c` of low halves, rounded to even, without modifiers; result in both halves.
    MultiplyAddLow,
    Copy,
    /// Modulo 2^32.
    Add,
    /// Unsigned; 1 or 0.
    Above,
    /// `a`, plus 1 if `b > c` (unsigned), modulo 2^32: the high word of a sum.
    Carry,
    /// Loads `c` words that others take later, from `e` bytes behind the address in `a`, `b`. It may leave that to
    /// them.
    Ahead,
    /// A word from `e` bytes behind the address in `a`, `b`, or row `c`, if a load ahead put it there.
    Word,
    /// `m` words, `c` bytes of them in memory, from the address in `a`, `b`.
    Load,
    /// The same from offset `a` in uniform buffer `b`.
    LoadUniform,
    /// `c` bytes, `m` words, to the address in `a`, `b`.
    Store,
    /// On the word at the address in `a`, `b`.
    Atomic,
    /// On the 64 bits at the address in `a`, `b`.
    AtomicDouble,
    /// By conversion descriptor `c`, from the address in `a`, `b`; `e` is as `m`.
    LoadTexel,
    /// By conversion descriptor `c`, to the address in `a`, `b`; `e` is as `m`.
    StoreTexel,
    Texture,
}

pub(crate) type OnRows = fn(&MicroOp, &mut Rows);

/// Touches memory, descriptors or clocks.
pub(crate) type OnMemory = fn(&MicroOp, &mut Rows, &mut Core<'_>) -> Done;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// Rows alone; cannot fail.
    Rows(OnRows),
    /// Stands for the next `m` micro-operations.
    Several(fn(&[MicroOp], &mut Rows)),
    Message(OnMemory),
    /// Whether the next `c` micro-operations have nothing to do.
    Done(fn(&MicroOp, &Rows, &mut Core<'_>) -> bool),
}
