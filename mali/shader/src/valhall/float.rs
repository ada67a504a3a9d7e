// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic on singles and pairs of halves.

use gpureplay_shader::alu::scale::{self, Special};
use gpureplay_shader::alu::{Clamp, Nan, Round, float, half};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::common::Common;
use gpureplay_shader::operations::halves;
use mali_isa::valhall::{CLAMP, CONSTANT, Op, ROUND_MODE};

use super::{Translator, Trap};
use crate::Subnormals;

impl Translator<'_> {
    pub(super) fn float(&mut self, op: Op) -> Result<bool, Trap> {
        let d = self.dest;
        match op {
            Op::FaddF32 => {
                let [a, b] = [self.single(0)?, self.single(1)?];
                map!(self, d, [a, b], |a, b| float::fadd(a, b));
                self.limit();
            }
            Op::FaddImmF32 => {
                let row = self.single(0)?;
                let [a, b] = self.with_constant(row);
                map!(self, d, [a, b], |a, b| float::fadd(a, b));
                self.limit();
            }
            Op::FmaF32 => {
                let sources = self.singles()?;
                self.multiply_add(d, sources);
                self.limit();
            }
            Op::FmaxF32 | Op::FminF32 => {
                let [a, b] = [self.single(0)?, self.single(1)?];
                if op == Op::FmaxF32 {
                    map!(self, d, [a, b], |a, b| float::fmax(a, b, Nan::Suppress));
                } else {
                    map!(self, d, [a, b], |a, b| float::fmin(a, b, Nan::Suppress));
                }
                self.limit();
            }
            Op::FaddLscaleF32 => {
                let [a, b] = [self.single(0)?, self.single(1)?];
                map!(self, d, [a, b], |a, b| scale::fadd_lscale(a, b));
                self.limit();
            }
            Op::FmaRscaleF32 | Op::FmaRscaleLeftF32 => self.scaled(Special::None)?,
            Op::FmaRscaleNF32 => self.scaled(Special::Zero)?,
            Op::FmaRscaleScale16F32 => self.scaled(Special::Scale16)?,
            Op::LdexpF32 => {
                let ([a, b], how) = ([self.single(0)?, self.source(1)?], self.round());
                rounded!(self, how, [Even], d, [a, b], |round, a, b| {
                    scale::ldexp(a, b, round)
                });
                self.limit();
            }
            Op::FroundF32 => {
                let (a, how) = (self.single(0)?, self.round());
                rounded!(self, how, [Even, Up, Down, Zero], d, [a], |round, a| {
                    float::fround(a, round)
                });
                self.limit();
            }
            Op::FaddV2f16 => {
                let [a, b] = [self.halves(0)?, self.halves(1)?];
                map!(self, d, [a, b], |a, b| half::fadd(a, b, Round::Even));
                self.limit_halves();
            }
            Op::FaddImmV2f16 => {
                let row = self.halves(0)?;
                let [a, b] = self.with_constant(row);
                map!(self, d, [a, b], |a, b| half::fadd(a, b, Round::Even));
                self.limit_halves();
            }
            Op::FmaV2f16 => {
                let sources = [self.halves(0)?, self.halves(1)?, self.halves(2)?];
                self.rows(halves::multiply_add(), d, sources, 0);
                self.limit_halves();
            }
            Op::FmaxV2f16 | Op::FminV2f16 => {
                let [a, b] = [self.halves(0)?, self.halves(1)?];
                if op == Op::FmaxV2f16 {
                    map!(self, d, [a, b], |a, b| half::fmax(a, b, Nan::Suppress));
                } else {
                    map!(self, d, [a, b], |a, b| half::fmin(a, b, Nan::Suppress));
                }
                self.limit_halves();
            }
            Op::LdexpV2f16 => {
                let ([a, b], how) = ([self.halves(0)?, self.source(1)?], self.round());
                rounded!(self, how, [], d, [a, b], |round, a, b| {
                    scale::ldexp_half(a, b, round)
                });
                self.limit_halves();
            }
            Op::FroundV2f16 => {
                let (a, how) = (self.halves(0)?, self.round());
                rounded!(self, how, [Even], d, [a], |round, a| half::fround(a, round));
                self.limit_halves();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn singles(&mut self) -> Result<[u16; 3], Trap> {
        Ok([self.single(0)?, self.single(1)?, self.single(2)?])
    }

    fn with_constant(&mut self, row: u16) -> [u16; 2] {
        let constant = self.ins.value(&CONSTANT).unwrap_or(0);
        [row, self.number(constant as u32)]
    }

    fn scaled(&mut self, special: Special) -> Result<(), Trap> {
        let (d, [a, b, c], e) = (self.dest, self.singles()?, self.source(3)?);
        each!(special, SPECIAL: Special { None, Zero, Left, Scale16 } => {
            map!(self, d, [a, b, c, e], |a, b, c, e| {
                scale::fma_rscale(a, b, c, e, Round::Even, SPECIAL)
            });
        });
        self.limit();
        Ok(())
    }

    pub(super) fn round(&self) -> Round {
        match self.ins.named(&ROUND_MODE) {
            Some("rtp") => Round::Up,
            Some("rtn") => Round::Down,
            Some("rtz") => Round::Zero,
            _ => Round::Even,
        }
    }

    fn limits(&self) -> Clamp {
        match self.ins.named(&CLAMP) {
            Some("clamp_0_inf") => Clamp::ZeroInf,
            Some("clamp_m1_1") => Clamp::MinusOneOne,
            Some("clamp_0_1") => Clamp::ZeroOne,
            _ => Clamp::None,
        }
    }

    pub(super) fn limit(&mut self) {
        let (limits, d) = (self.limits(), self.dest);
        if self.subnormals != Subnormals::Kept {
            map!(self, d, [d], |x| float::flush(x));
        }
        self.clamp_single(limits, d);
    }

    pub(super) fn limit_halves(&mut self) {
        let (limits, d) = (self.limits(), self.dest);
        if self.subnormals == Subnormals::Flushed {
            map!(self, d, [d], |x| half::flush(x));
        }
        self.clamp_halves(limits, d);
    }
}
