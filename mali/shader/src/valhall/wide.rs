// SPDX-License-Identifier: MIT OR Apache-2.0
//! 64-bit operations, in pairs of registers.

use gpureplay_shader::alu::lanes::Part;
use gpureplay_shader::alu::shift::{Double, Logic, double};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::operations::loops;
use mali_isa::valhall::{NOT_RESULT, Op, SATURATE, SHIFT, SIGNED};

use super::{Translator, Trap};

const UP: u32 = 32;

impl Translator<'_> {
    pub(super) fn wide(&mut self, op: Op) -> Result<bool, Trap> {
        match op {
            Op::IaddU64 => self.sum_wide(false, false)?,
            Op::IaddS64 => self.sum_wide(false, true)?,
            Op::IsubU64 => self.sum_wide(true, false)?,
            Op::IsubS64 => self.sum_wide(true, true)?,
            Op::ShaddxU64 => self.shift_and_add(false)?,
            Op::ShaddxS64 => self.shift_and_add(true)?,
            Op::LshiftAndI64 => self.shift_wide(Logic::And, true)?,
            Op::LshiftOrI64 => self.shift_wide(Logic::Or, true)?,
            Op::LshiftXorI64 => self.shift_wide(Logic::Xor, true)?,
            Op::RshiftAndI64 => self.shift_wide(Logic::And, false)?,
            Op::RshiftOrI64 => self.shift_wide(Logic::Or, false)?,
            Op::RshiftXorI64 => self.shift_wide(Logic::Xor, false)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `to[0]` is none of the other rows.
    pub(super) fn add_wide(&mut self, to: [u16; 2], a: [u16; 2], b: [u16; 2]) {
        map!(self, to[0], [a[0], b[0]], |a, b| a.wrapping_add(b));
        map!(
            self,
            to[1],
            [a[0], a[1], b[0], b[1]],
            |low, high, by_low, by_high| {
                let carry = u32::from(low.checked_add(by_low).is_none());
                high.wrapping_add(by_high).wrapping_add(carry)
            }
        );
    }

    fn wide_source(&mut self, byte: usize, signed: bool) -> Result<[u16; 2], Trap> {
        let low = match self.operand(byte)?.selected() {
            None | Some("none") => return self.pair(byte),
            Some("w0") => self.source(byte)?,
            Some(_) => self.scalar(byte, signed)?,
        };
        if !signed {
            return Ok([low, self.number(0)]);
        }
        let high = self.temporary()?;
        map!(self, high, [low], |x| ((x as i32) >> 31) as u32);
        Ok([low, high])
    }

    fn finish_wide(&mut self, [low, high]: [u16; 2]) -> Result<(), Trap> {
        let d = self.dest;
        if !d.is_multiple_of(2) {
            return Err(self.trap("writes no even pair of registers"));
        }
        self.copy(low, d);
        self.copy(high, d + 1);
        Ok(())
    }

    fn sum_wide(&mut self, subtracts: bool, signed: bool) -> Result<(), Trap> {
        if self.ins.value(&SATURATE) == Some(1) {
            return Err(self.trap("saturates, which is not translated"));
        }
        let [a, b] = [self.wide_source(0, signed)?, self.wide_source(1, signed)?];
        let to = [self.temporary()?, self.temporary()?];
        if subtracts {
            map!(self, to[0], [a[0], b[0]], |a, b| a.wrapping_sub(b));
            map!(
                self,
                to[1],
                [a[0], a[1], b[0], b[1]],
                |low, high, by_low, by_high| {
                    let borrow = u32::from(low < by_low);
                    high.wrapping_sub(by_high).wrapping_sub(borrow)
                }
            );
        } else {
            self.add_wide(to, a, b);
        }
        self.finish_wide(to)
    }

    fn shift_and_add(&mut self, signed: bool) -> Result<(), Trap> {
        let [a, b] = [self.pair(0)?, self.wide_source(1, signed)?];
        let by = self.ins.value(&SHIFT).unwrap_or(0);
        let by = self.number(by as u32);
        let shifted = self.doubled(Double::Left, [b[0], b[1], by])?;
        let to = [self.temporary()?, self.temporary()?];
        self.add_wide(to, a, shifted);
        self.finish_wide(to)
    }

    fn shift_wide(&mut self, logic: Logic, left: bool) -> Result<(), Trap> {
        let kind = match (left, self.ins.value(&SIGNED)) {
            (true, _) => Double::Left,
            (false, Some(1)) => Double::Arithmetic,
            (false, _) => Double::Right,
        };
        let value = self.wide_source(0, kind == Double::Arithmetic)?;
        let (count, byte) = (self.source(1)?, self.counting_byte(1)?);
        let count = self.part(count, Part::byte(byte.into()), false)?;
        let shifted = self.doubled(kind, [value[0], value[1], count])?;
        let other = self.pair(2)?;
        let bit = |yes: bool| if yes { u32::MAX } else { 0 };
        let not_other = self.number(bit(self.operand(2)?.complement));
        let not_result = self.number(bit(self.ins.value(&NOT_RESULT) == Some(1)));
        let to = [self.temporary()?, self.temporary()?];
        for word in 0..2 {
            let (d, x, b) = (to[word], shifted[word], other[word]);
            match logic {
                Logic::And => map!(self, d, [x, b, not_other, not_result], |x, b, n, r| {
                    (x & (b ^ n)) ^ r
                }),
                Logic::Or => map!(self, d, [x, b, not_other, not_result], |x, b, n, r| {
                    (x | (b ^ n)) ^ r
                }),
                Logic::Xor => map!(self, d, [x, b, not_other, not_result], |x, b, n, r| {
                    (x ^ (b ^ n)) ^ r
                }),
            }
        }
        self.finish_wide(to)
    }

    /// Sources: low, high, count.
    fn doubled(&mut self, kind: Double, sources: [u16; 3]) -> Result<[u16; 2], Trap> {
        let to = [self.temporary()?, self.temporary()?];
        for (row, down) in to.into_iter().zip([0, UP]) {
            macro_rules! word {
                ($kind:ident) => {
                    loops::rare::three(|m, low, high, n| {
                        (double(low, high, n & 63, Double::$kind, false) >> m) as u32
                    })
                };
            }
            let run = match kind {
                Double::Left => word!(Left),
                Double::Right => word!(Right),
                _ => word!(Arithmetic),
            };
            self.rare(run, row, sources, down);
        }
        Ok(to)
    }
}
