// SPDX-License-Identifier: MIT OR Apache-2.0
//! Micro-operations: instructions with operands and modifiers resolved.

use crate::core::{Core, Done};
use crate::rows::Rows;

/// On rows `a`, `b`, `c`, `e`, into row `d` or those from there on.
#[derive(Clone, Copy, Debug)]
pub struct MicroOp {
    /// What it does.
    pub run: Run,
    /// For messages the first staging register.
    pub d: u16,
    /// First source.
    pub a: u16,
    /// The second.
    pub b: u16,
    /// The third.
    pub c: u16,
    /// The fourth.
    pub e: u16,
    /// Modifiers.
    pub m: u32,
    /// Sources read, from `a` on.
    pub sources: u8,
    /// For optimisations.
    pub kind: Kind,
    /// Part of a joined clause.
    pub part: u8,
}

/// What optimisations and probes know of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is known.
    Plain,
    /// Single `a * b + c`, rounded to even, without modifiers.
    MultiplyAdd,
    /// The same of low halves, result in both.
    MultiplyAddLow,
    /// Row `a`.
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
    /// Reads by coordinates.
    Texture,
}

/// Of lanes alone.
pub type OnRows = fn(&MicroOp, &mut Rows);

/// Looks beyond its lane.
pub type OnMemory = fn(&MicroOp, &mut Rows, &mut Core<'_>) -> Done;

/// The function.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Of lanes alone.
    Rows(OnRows),
    /// Stands for the next `m` micro-operations.
    Several(fn(&[MicroOp], &mut Rows)),
    /// May fault.
    Message(OnMemory),
    /// Whether the next `c` ones have nothing to do.
    Done(fn(&MicroOp, &Rows, &mut Core<'_>) -> bool),
}
