// SPDX-License-Identifier: MIT OR Apache-2.0
//! Micro-operations: what an instruction becomes once its operands and modifiers are resolved.

use crate::core::{Core, Done};
use crate::rows::Rows;

/// One step of a clause: a function and the rows that it works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MicroOp {
    pub(crate) run: Run,
    /// Destination row; for messages the first staging register.
    pub(crate) d: u16,
    /// Source rows.
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u16,
    pub(crate) e: u16,
    /// Modifiers and immediates, as the function wants them.
    pub(crate) m: u32,
    /// How many of the source rows it reads, from `a` on.
    pub(crate) sources: u8,
    /// What it does, if others want to know.
    pub(crate) kind: Kind,
    /// Of which of the clauses that were joined it is a part.
    pub(crate) part: u8,
}

/// Micro-operations that are treated in a special way by what makes others of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No other micro-operation needs to know.
    Plain,
    /// Single-precision `a * b + c`, rounded to even, without modifiers.
    MultiplyAdd,
    /// Half-precision `a * b + c` of the low halves, rounded to even, without modifiers; the result is in both halves.
    MultiplyAddLow,
    Copy,
    /// `a + b`, modulo 2^32.
    Add,
    /// 1 if `a` is above `b` as an unsigned number, else 0.
    Above,
    /// `a`, and 1 more if `b` is above `c` as an unsigned number, modulo 2^32: the high word of a sum.
    Carry,
    /// A load of `c` words, which others take later, from `e` bytes behind the address in `a` and `b`. It may leave that to them.
    Ahead,
    /// A load of a word from `e` bytes behind the address in `a` and `b`, or row `c`, if a load ahead put it there.
    Word,
    /// A load of `m` words, of which `c` bytes are in memory, from the address in `a` and `b`.
    Load,
    /// The same from an offset (`a`) in a uniform buffer (`b`).
    LoadUniform,
    /// A store of `c` bytes, `m` words, to the address in `a` and `b`.
    Store,
    /// An atomic operation on the word at the address in `a` and `b`.
    Atomic,
    /// An atomic operation on the 64 bits at the address in `a` and `b`.
    AtomicDouble,
    /// A load through a conversion descriptor in `c`, from the address in `a` and `b`; `e` is as `m`.
    LoadTexel,
    /// A store through a conversion descriptor in `c`, to the address in `a` and `b`; `e` is as `m`.
    StoreTexel,
    /// Texels that are read by coordinates.
    Texture,
}

pub(crate) type OnRows = fn(&MicroOp, &mut Rows);

/// A function that touches memory, descriptors or clocks.
pub(crate) type OnMemory = fn(&MicroOp, &mut Rows, &mut Core<'_>) -> Done;

/// The function of a micro-operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// Works on rows alone and cannot fail.
    Rows(OnRows),
    /// Stands for as many of the micro-operations that follow it as `m` says, and for what they do one after the other.
    Several(fn(&[MicroOp], &mut Rows)),
    /// Touches memory, descriptors or clocks.
    Message(OnMemory),
    /// Says whether the micro-operations that follow, as many as `c` says, have nothing to do.
    Done(fn(&MicroOp, &Rows, &mut Core<'_>) -> bool),
}
