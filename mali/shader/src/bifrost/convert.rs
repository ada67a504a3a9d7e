// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversions of integers, halves and singles.

use gpureplay_shader::alu::lanes::Part;
use gpureplay_shader::alu::{Clamp, Round, convert, half};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::operations::loops;
use mali_isa::Lanes;

use super::float::round;
use super::{Translator, Trap};

impl Translator<'_> {
    pub(super) fn single_to_integer(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let a = self.single_modified(0)?;
        if signed {
            rounded!(self, how, [Even, Zero], d, [a], |round, a| {
                convert::f32_to_s32(a, round)
            });
        } else {
            rounded!(self, how, [Even, Zero], d, [a], |round, a| {
                convert::f32_to_u32(a, round)
            });
        }
        Ok(())
    }

    pub(super) fn integer_to_single(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let a = self.source(0)?;
        if signed {
            rounded!(self, how, [Even], d, [a], |round, a| {
                convert::s32_to_f32(a, round)
            });
        } else {
            rounded!(self, how, [Even], d, [a], |round, a| {
                convert::u32_to_f32(a, round)
            });
        }
        Ok(())
    }

    pub(super) fn half_to_single(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.half_source()?);
        map!(self, d, [a], |a| half::to_single(a as u16));
        self.finish_single();
        Ok(())
    }

    pub(super) fn half_to_integer(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let a = self.half_source()?;
        if signed {
            rounded!(self, how, [Zero], d, [a], |round, a| {
                convert::f16_to_s32(a, false, round)
            });
        } else {
            rounded!(self, how, [Zero], d, [a], |round, a| {
                convert::f16_to_u32(a, false, round)
            });
        }
        Ok(())
    }

    pub(super) fn halves_to_integers(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let a = self.halves(0)?;
        if signed {
            rounded!(self, how, [Zero], d, [a], |round, a| {
                convert::v2f16_to_v2s16(a, round)
            });
        } else {
            rounded!(self, how, [Zero], d, [a], |round, a| {
                convert::v2f16_to_v2u16(a, round)
            });
        }
        Ok(())
    }

    pub(super) fn integers_to_halves(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let a = self.arranged_source(false)?;
        if signed {
            rounded!(self, how, [Even], d, [a], |round, a| {
                convert::v2s16_to_v2f16(a, round)
            });
        } else {
            rounded!(self, how, [Even], d, [a], |round, a| {
                convert::v2u16_to_v2f16(a, round)
            });
        }
        Ok(())
    }

    pub(super) fn bytes_to_halves(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.arranged_source(signed)?);
        if signed {
            map!(self, d, [a], |a| convert::small_halves_to_v2f16(a, true));
        } else {
            map!(self, d, [a], |a| convert::small_halves_to_v2f16(a, false));
        }
        Ok(())
    }

    pub(super) fn singles_to_halves(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        rounded!(self, how, [Even], d, [a, b], |round, a, b| {
            convert::v2f32_to_v2f16(a, b, round, Clamp::None)
        });
        self.finish_halves();
        Ok(())
    }

    pub(super) fn part_to_single(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.arranged_source(signed)?);
        if signed {
            map!(self, d, [a], |a| convert::signed_part_to_f32(a, Part::Word));
        } else {
            map!(self, d, [a], |a| convert::unsigned_part_to_f32(
                a,
                Part::Word
            ));
        }
        Ok(())
    }

    pub(super) fn extended(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.arranged_source(signed)?);
        self.copy(a, d);
        Ok(())
    }

    fn arranged_source(&mut self, signed: bool) -> Result<u16, Trap> {
        let (row, lanes) = (self.source(0)?, self.ins.lanes0());
        self.arranged(row, lanes, signed)
    }

    pub(super) fn half_source(&mut self) -> Result<u16, Trap> {
        let row = self.source(0)?;
        let row = match self.ins.lanes0() {
            Lanes::H1 => self.part(row, Part::H1, false)?,
            _ => row,
        };
        let (abs, neg) = self.signs(0);
        if !(abs || neg || self.flushes()) {
            return Ok(row);
        }
        let to = self.temporary()?;
        let m = u32::from(abs) | u32::from(neg) << 1 | u32::from(self.flushes()) << 2;
        self.rows(
            loops::one(
                #[inline(always)]
                |m, x| {
                    let (abs, neg, flush) = (m & 1 != 0, m & 2 != 0, m & 4 != 0);
                    half::modify(if flush { half::flush(x) } else { x }, abs, neg)
                },
            ),
            to,
            [row],
            m,
        );
        Ok(to)
    }
}
