// SPDX-License-Identifier: MIT OR Apache-2.0
//! Micro-operations: instructions with operands and modifiers resolved.

use crate::core::{Core, Done};
use crate::rows::Rows;

#[derive(Clone, Copy, Debug)]
pub(crate) struct MicroOp {
    pub(crate) run: Run,
    /// For messages the first staging register.
    pub(crate) d: u16,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u16,
    pub(crate) e: u16,
    pub(crate) m: u32,
    /// Sources read, from `a` on.
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
    /// The same of low halves, result in both.
    MultiplyAddLow,
    Copy,
    /// Modulo 2^32.
    Add,
    /// Unsigned; 1 or 0.
    Above,
    /// `a + (b > c)`, unsigned, modulo 2^32: a sum's high word.
    Carry,
    /// Loads `c` words for later, from `e` bytes behind the address in `a`, `b`, or leaves it to the later ones.
    Ahead,
    /// From `e` bytes behind the address in `a`, `b`, or from row `c`, if loaded ahead.
    Word,
    /// `m` words, `c` bytes of memory, from the address in `a`, `b`.
    Load,
    /// The same from offset `a` in uniform buffer `b`.
    LoadUniform,
    /// `c` bytes, `m` words, to the address in `a`, `b`.
    Store,
    /// One word at the address in `a`, `b`.
    Atomic,
    /// 64 bits at the address in `a`, `b`.
    AtomicDouble,
    /// Conversion descriptor `c`, address in `a`, `b`; `e` is as `m`.
    LoadTexel,
    /// Conversion descriptor `c`, address in `a`, `b`; `e` is as `m`.
    StoreTexel,
    Texture,
}

pub(crate) type OnRows = fn(&MicroOp, &mut Rows);

pub(crate) type OnMemory = fn(&MicroOp, &mut Rows, &mut Core<'_>) -> Done;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    Rows(OnRows),
    /// Stands for the next `m` micro-operations.
    Several(fn(&[MicroOp], &mut Rows)),
    Message(OnMemory),
    /// Whether the next `c` ones have nothing to do.
    Done(fn(&MicroOp, &Rows, &mut Core<'_>) -> bool),
}
