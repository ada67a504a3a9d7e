// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations that instruction sets share.

use super::Emit;
use super::compare::{compare_numbers, select_numbers};
use crate::alu::{Clamp, Compare, Truth, float, half};
use crate::ir::micro::{Kind, OnMemory, Run};
use crate::operations::memory::store_of;
use crate::operations::{halves, loops};
use crate::vectors;

/// Numbers and memory.
pub trait Common: Emit {
    /// Compares singles; true is `m`.
    fn compare_singles(&mut self, d: u16, [a, b]: [u16; 2], how: Compare, m: u32) {
        let (how, exchanged) = how.turned();
        let sources = if exchanged { [b, a] } else { [a, b] };
        let run = compare_numbers!(how, float);
        self.rows(run, d, sources, m);
    }

    /// Compares both halves; true is `m`.
    fn compare_halves(&mut self, d: u16, [a, b]: [u16; 2], how: Compare, m: u32) {
        let (how, exchanged) = how.turned();
        let sources = if exchanged { [b, a] } else { [a, b] };
        let run = compare_numbers!(how, half);
        self.rows(run, d, sources, m);
    }

    /// Selects `c` or `e` by comparing singles or pairs of halves.
    fn select_floats(&mut self, d: u16, [a, b, c, e]: [u16; 4], how: Compare, narrow: bool) {
        let (how, exchanged) = how.turned();
        let (a, b) = if exchanged { (b, a) } else { (a, b) };
        // `Ne` is compared as `Eq`.
        let (c, e) = if how == Compare::Ne { (e, c) } else { (c, e) };
        let run = match narrow {
            false => select_numbers!(how, float),
            true => select_numbers!(how, half),
        };
        self.rows(run, d, [a, b, c, e], 0);
    }

    /// Rounded once to nearest even.
    fn multiply_add(&mut self, d: u16, [a, b, c]: [u16; 3]) {
        if vectors::has_fused_multiply_add() {
            map!(self, d, [a, b, c], |a, b, c| float::fma(a, b, c));
            self.known_as(Kind::MultiplyAdd);
        } else {
            map!(self, d, [a, b, c], |a, b, c| float::fma_portable(a, b, c));
        }
    }

    /// Multiplies and adds low halves, result in both.
    fn multiply_add_low(&mut self, d: u16, sources: [u16; 3]) {
        self.rows(halves::multiply_add_low(), d, sources, 0);
        self.known_as(Kind::MultiplyAddLow);
    }

    /// In place.
    fn clamp_single(&mut self, limits: Clamp, d: u16) {
        if limits != Clamp::None {
            each!(limits, LIMITS: Clamp { None, ZeroInf, MinusOneOne, ZeroOne } => {
                map!(self, d, [d], |x| float::clamp(x, LIMITS));
            });
        }
    }

    /// In place.
    fn clamp_halves(&mut self, limits: Clamp, d: u16) {
        if limits != Clamp::None {
            each!(limits, LIMITS: Clamp { None, ZeroInf, MinusOneOne, ZeroOne } => {
                map!(self, d, [d], |x| half::clamp(x, LIMITS));
            });
        }
    }

    /// Loads or stores `bytes` of the address in `a`, `b`.
    fn moves(&mut self, run: OnMemory, kind: Kind, d: u16, [a, b]: [u16; 2], bytes: u32) {
        let size = bytes as u16;
        self.emit(Run::Message(run), d, [a, b, size, 0], bytes.div_ceil(4));
        if let Some(op) = self.ops().last_mut() {
            (op.sources, op.kind) = (2, kind);
        }
    }

    /// From register `first` on.
    fn stores(&mut self, first: u16, address: [u16; 2], bytes: u32) {
        for register in 0..bytes.div_ceil(4) as u8 {
            self.reads(first as u8 + register);
        }
        self.moves(store_of(bytes), Kind::Store, first, address, bytes);
    }

    /// In place.
    fn extend_sign(&mut self, row: u16, bytes: u32) {
        let run = loops::one(
            #[inline(always)]
            |m, x| (((x << (m & 31)) as i32) >> (m & 31)) as u32,
        );
        self.rows(run, row, [row], 32 - 8 * bytes);
    }
}

impl<T: Emit> Common for T {}
