// SPDX-License-Identifier: MIT OR Apache-2.0
//! How translators emit micro-operations.

pub mod common;
mod compare;
pub mod elements;

use crate::alu::half;
use crate::alu::lanes::{Halves, Part, bytes_to_halves};
use crate::ir::micro::{Kind, MicroOp, OnRows, Run};
use crate::ir::{Constant, Program, Trap};
use crate::operations::loops::{self, copy};

/// Of a call for one lane, in sixteenths of a clause.
pub const CALL_COST: u32 = 3;

/// Byte of an element in an arrangement like `b1032`.
pub fn byte_named(name: &str, element: usize) -> u32 {
    let digit = name.as_bytes().get(1 + element).copied();
    u32::from(digit.unwrap_or(b'0') & 3)
}

/// A translator, and what all translators do.
pub trait Emit {
    /// For constants and numbers of clauses.
    fn program(&mut self) -> &mut Program;

    /// Emitted so far.
    fn ops(&mut self) -> &mut Vec<MicroOp>;

    /// A row for a value in between.
    fn temporary(&mut self) -> Result<u16, Trap>;

    /// Cost of executing lane by lane, in sixteenths of a clause.
    fn lane_cost(&mut self) -> &mut u32;

    /// Notes that a register's first value may be seen.
    fn reads(&mut self, register: u8) {
        self.program().visible |= 1 << (register & 63);
    }

    /// The row of a constant.
    fn number(&mut self, value: u32) -> u16 {
        self.program().constant(Constant::Value(value))
    }

    /// With modifiers `m`.
    fn emit(&mut self, run: Run, d: u16, [a, b, c, e]: [u16; 4], m: u32) {
        self.ops().push(MicroOp {
            run,
            d,
            a,
            b,
            c,
            e,
            m,
            sources: 4,
            kind: Kind::Plain,
            part: 0,
        });
    }

    /// On rows alone.
    fn rows<const N: usize>(&mut self, run: OnRows, d: u16, sources: [u16; N], m: u32) {
        let mut all = [0; 4];
        for (to, from) in all.iter_mut().zip(sources) {
            *to = from;
        }
        self.emit(Run::Rows(run), d, all, m);
        if let Some(op) = self.ops().last_mut() {
            op.sources = N as u8;
        }
    }

    /// Called lane by lane.
    fn rare<const N: usize>(&mut self, run: OnRows, d: u16, sources: [u16; N], m: u32) {
        *self.lane_cost() += CALL_COST;
        self.rows(run, d, sources, m);
    }

    /// Copies a row.
    fn copy(&mut self, from: u16, to: u16) {
        self.rows(copy, to, [from], 0);
        self.known_as(Kind::Copy);
    }

    /// Tells optimisations what the last one is.
    fn known_as(&mut self, kind: Kind) {
        if let Some(op) = self.ops().last_mut() {
            op.kind = kind;
        }
    }

    /// Extends a part of a word.
    fn part(&mut self, row: u16, part: Part, signed: bool) -> Result<u16, Trap> {
        if part == Part::Word {
            return Ok(row);
        }
        let (left, right) = part.shifts();
        let (to, m) = (self.temporary()?, left | right << 8);
        let run = match signed {
            true => loops::one(
                #[inline(always)]
                |m, x| (((x << (m & 31)) as i32) >> (m >> 8 & 31)) as u32,
            ),
            false => loops::one(
                #[inline(always)]
                |m, x| x << (m & 31) >> (m >> 8 & 31),
            ),
        };
        self.rows(run, to, [row], m);
        Ok(to)
    }

    /// A half as a single.
    fn widened(&mut self, row: u16, part: Part) -> Result<u16, Trap> {
        let narrow = self.part(row, part, false)?;
        let to = self.temporary()?;
        map!(self, to, [narrow], |x| half::to_single(x as u16));
        Ok(to)
    }

    /// Halves in an order.
    fn ordered(&mut self, row: u16, order: Halves) -> Result<u16, Trap> {
        if order == Halves::H01 {
            return Ok(row);
        }
        let to = self.temporary()?;
        match order {
            Halves::H00 => map!(self, to, [row], |x| Halves::H00.apply(x)),
            Halves::H10 => map!(self, to, [row], |x| Halves::H10.apply(x)),
            _ => map!(self, to, [row], |x| Halves::H11.apply(x)),
        }
        Ok(to)
    }

    /// Extends two bytes.
    fn bytes_as_halves(&mut self, row: u16, bytes: [u32; 2], signed: bool) -> Result<u16, Trap> {
        let (to, m) = (self.temporary()?, bytes[0] | bytes[1] << 2);
        let run = match signed {
            true => loops::one(
                #[inline(always)]
                |m, x| bytes_to_halves(x, m & 3, m >> 2 & 3, true),
            ),
            false => loops::one(
                #[inline(always)]
                |m, x| bytes_to_halves(x, m & 3, m >> 2 & 3, false),
            ),
        };
        self.rows(run, to, [row], m);
        Ok(to)
    }

    /// Bytes in an order.
    fn bytes_ordered(&mut self, row: u16, order: [u32; 4]) -> Result<u16, Trap> {
        if order == [0, 1, 2, 3] {
            return Ok(row);
        }
        let to = self.temporary()?;
        let m = order.iter().rev().fold(0, |m, byte| (m << 8) | (byte * 8));
        self.rows(
            loops::one(
                #[inline(always)]
                |m, x| {
                    let [a, b, c, d] = m.to_le_bytes().map(u32::from);
                    (x >> a & 0xff)
                        | (x >> b & 0xff) << 8
                        | (x >> c & 0xff) << 16
                        | (x >> d & 0xff) << 24
                },
            ),
            to,
            [row],
            m,
        );
        Ok(to)
    }

    /// `x & keep ^ flip`.
    fn modified(&mut self, row: u16, keep: u32, flip: u32) -> Result<u16, Trap> {
        if keep == u32::MAX && flip == 0 {
            return Ok(row);
        }
        let (to, keep, flip) = (self.temporary()?, self.number(keep), self.number(flip));
        map!(self, to, [row, keep, flip], |x, keep, flip| x & keep ^ flip);
        Ok(to)
    }

    /// Replaces bits from `at` on.
    fn merge(&mut self, to: u16, from: u16, at: u32, mask: u32) {
        let (mask, at) = (self.number(mask << at), self.number(at));
        map!(self, to, [to, from, mask, at], |old, new, mask, at| {
            old & !mask | (new << (at & 31)) & mask
        });
    }
}
