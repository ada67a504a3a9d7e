// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single-precision arithmetic, conversions, comparisons.

use mali_valhall::{CLAMP, CONSTANT, Op, ROUND_MODE};

use super::Translator;
use crate::alu::shift::Logic;
use crate::alu::{Clamp, Compare, Nan, Round, Truth, convert, float, special};
use crate::ir::micro::Kind;
use crate::operations::loops;
use crate::translate::Trap;
use crate::vectors;

impl Translator<'_> {
    /// Translates the instruction if it is one of these.
    pub(super) fn float(&mut self, op: Op) -> Result<bool, Trap> {
        let d = self.dest;
        match op {
            Op::FaddF32 => {
                let (a, b) = (self.single(0)?, self.single(1)?);
                map!(self, d, [a, b], |a, b| float::fadd(a, b));
                self.clamp()?;
            }
            Op::FaddImmF32 => {
                let constant = self.ins.value(&CONSTANT).unwrap_or(0) as u32;
                let (a, b) = (self.source(0)?, self.number(constant));
                map!(self, d, [a, b], |a, b| float::fadd(a, b));
            }
            Op::FmaF32 => {
                let [a, b, c] = [self.single(0)?, self.single(1)?, self.single(2)?];
                if vectors::has_fused_multiply_add() {
                    map!(self, d, [a, b, c], |a, b, c| float::fma(a, b, c));
                    self.known_as(Kind::MultiplyAdd);
                } else {
                    map!(self, d, [a, b, c], |a, b, c| float::fma_portable(a, b, c));
                }
                self.clamp()?;
            }
            Op::FmaxF32 => {
                let (a, b) = (self.single(0)?, self.single(1)?);
                map!(self, d, [a, b], |a, b| float::fmax(a, b, Nan::Suppress));
                self.clamp()?;
            }
            Op::FminF32 => {
                let (a, b) = (self.single(0)?, self.single(1)?);
                map!(self, d, [a, b], |a, b| float::fmin(a, b, Nan::Suppress));
                self.clamp()?;
            }
            Op::FroundF32 => {
                let (a, how) = (self.single(0)?, self.round());
                rounded!(self, how, [Even, Up, Down, Zero], d, [a], |round, a| {
                    float::fround(a, round)
                });
            }
            Op::S32ToF32 => {
                let (a, how) = (self.integer_source(0, true)?, self.round());
                rounded!(self, how, [Even], d, [a], |round, a| convert::s32_to_f32(
                    a, round
                ));
            }
            Op::U32ToF32 => {
                let (a, how) = (self.integer_source(0, false)?, self.round());
                rounded!(self, how, [Even], d, [a], |round, a| convert::u32_to_f32(
                    a, round
                ));
            }
            Op::S16ToF32 | Op::S8ToF32 => {
                let a = self.integer_source(0, true)?;
                map!(self, d, [a], |a| convert::s32_to_f32(a, Round::Even));
            }
            Op::U16ToF32 | Op::U8ToF32 => {
                let a = self.integer_source(0, false)?;
                map!(self, d, [a], |a| convert::u32_to_f32(a, Round::Even));
            }
            Op::F32ToS32 => {
                let (a, how) = (self.single(0)?, self.round());
                rounded!(self, how, [Even, Zero], d, [a], |round, a| {
                    convert::f32_to_s32(a, round)
                });
            }
            Op::F32ToU32 => {
                let (a, how) = (self.single(0)?, self.round());
                rounded!(self, how, [Even, Zero], d, [a], |round, a| {
                    convert::f32_to_u32(a, round)
                });
            }
            Op::FrcpF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::frcp(a));
            }
            Op::FrsqF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::frsq(a));
            }
            Op::FcmpOrF32 => self.fcmp(Logic::Or)?,
            Op::FcmpAndF32 => self.fcmp(Logic::And)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn round(&self) -> Round {
        match self.ins.named(&ROUND_MODE) {
            Some("rtp") => Round::Up,
            Some("rtn") => Round::Down,
            Some("rtz") => Round::Zero,
            _ => Round::Even,
        }
    }

    /// Limits the result, if the instruction says so.
    fn clamp(&mut self) -> Result<(), Trap> {
        let d = self.dest;
        let limits = match self.ins.named(&CLAMP) {
            Some("clamp_0_inf") => Clamp::ZeroInf,
            Some("clamp_m1_1") => Clamp::MinusOneOne,
            Some("clamp_0_1") => Clamp::ZeroOne,
            _ => return Ok(()),
        };
        each!(limits, LIMITS: Clamp { None, ZeroInf, MinusOneOne, ZeroOne } => {
            map!(self, d, [d], |x| float::clamp(x, LIMITS));
        });
        Ok(())
    }

    fn fcmp(&mut self, logic: Logic) -> Result<(), Trap> {
        let (how, truth) = (self.condition()?, self.truth()?);
        let (a, b) = (self.single(0)?, self.single(1)?);
        let (how, exchanged) = how.turned();
        let sources = if exchanged { [b, a] } else { [a, b] };
        let run = crate::translate::compare_numbers!(how, float);
        self.joined(logic, |t, d| {
            t.rows(run, d, sources, truth);
            Ok(())
        })
    }
}
