// SPDX-License-Identifier: MIT OR Apache-2.0
//! Half-precision arithmetic on pairs.

use gpureplay_shader::alu::scale::Special;
use gpureplay_shader::alu::{Nan, Round, half, scale};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::common::Common;
use gpureplay_shader::operations::halves;
use mali_isa::Lanes;

use super::float::{clamp, compare, nan, round, truth};
use super::{Translator, Trap};

impl Translator<'_> {
    pub(super) fn fadd_halves(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let (a, b) = (self.halves(0)?, self.halves(1)?);
        rounded!(self, how, [Even], d, [a, b], |round, a, b| {
            half::fadd(a, b, round)
        });
        self.finish_halves();
        Ok(())
    }

    pub(super) fn fma_halves(&mut self) -> Result<(), Trap> {
        let d = self.dest;
        let how = round(self.ins.round());
        let single = (0..3).all(|index| matches!(self.lanes(index), Lanes::H00 | Lanes::H11));
        if how == Round::Even && single {
            let (a, b, c) = (self.low_half(0)?, self.low_half(1)?, self.low_half(2)?);
            self.multiply_add_low(d, [a, b, c]);
        } else {
            let (a, b, c) = (self.halves(0)?, self.halves(1)?, self.halves(2)?);
            match how {
                Round::Even => self.rows(halves::multiply_add(), d, [a, b, c], 0),
                seldom => rounded!(self, seldom, [], d, [a, b, c], |round, a, b, c| {
                    half::fma(a, b, c, round)
                }),
            }
        }
        self.finish_halves();
        Ok(())
    }

    pub(super) fn fma_rscale_halves(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let (a, b, c) = (self.halves(0)?, self.halves(1)?, self.halves(2)?);
        let e = self.source(3)?;
        match self.ins.special() {
            mali_isa::Special::N => {
                rounded!(self, how, [], d, [a, b, c, e], |round, a, b, c, e| {
                    scale::fma_rscale_half(a, b, c, e, round, Special::Zero)
                })
            }
            _ => rounded!(self, how, [], d, [a, b, c, e], |round, a, b, c, e| {
                scale::fma_rscale_half(a, b, c, e, round, Special::None)
            }),
        }
        self.finish_halves();
        Ok(())
    }

    pub(super) fn fmax_halves(&mut self, largest: bool) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b) = (self.halves(0)?, self.halves(1)?);
        each!(nan(self.ins.nan()), NAN: Nan { Suppress, Propagate, C, InverseC } => if largest {
            map!(self, d, [a, b], |a, b| half::fmax(a, b, NAN));
        } else {
            map!(self, d, [a, b], |a, b| half::fmin(a, b, NAN));
        });
        self.finish_halves();
        Ok(())
    }

    pub(super) fn fcmp_halves(&mut self) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b) = (self.halves(0)?, self.halves(1)?);
        let m = u32::from(truth(self.ins.result_type()).half(true)) * 0x1_0001;
        self.compare_halves(d, [a, b], compare(self.ins.compare()), m);
        Ok(())
    }

    pub(super) fn fround_halves(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.halves(0)?);
        let how = round(self.ins.round());
        rounded!(self, how, [Even], d, [a], |round, a| half::fround(a, round));
        self.finish_halves();
        Ok(())
    }

    pub(super) fn ldexp_halves(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let (a, b) = (self.halves(0)?, self.source(1)?);
        rounded!(self, how, [], d, [a, b], |round, a, b| {
            scale::ldexp_half(a, b, round)
        });
        self.finish_halves();
        Ok(())
    }

    pub(super) fn quiet_halves(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.halves(0)?);
        map!(self, d, [a], |a| half::quiet2(a));
        Ok(())
    }

    pub(super) fn finish_halves(&mut self) {
        let d = self.dest;
        if self.flushes() {
            map!(self, d, [d], |x| half::flush(x));
        }
        self.clamp_halves(clamp(self.ins.clamp()), d);
    }
}
