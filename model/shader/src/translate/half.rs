// SPDX-License-Identifier: MIT OR Apache-2.0
//! Half-precision arithmetic on pairs, comparison and selection.

use mali_isa::Lanes;
use mali_isa::Mnemonic as M;

use super::float::{clamp, compare, nan, round, truth};
use super::{Translator, Trap};
use crate::alu::scale::Special as Kind;
use crate::alu::{Clamp, Compare, Nan, Round, Truth, half, scale};
use crate::ir::micro;
use crate::operations::{halves, loops};

impl Translator<'_> {
    pub(super) fn half(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        match self.ins.op.mnemonic() {
            M::FaddV2f16 => {
                let (a, b) = (self.halves(0)?, self.halves(1)?);
                each_round!(round(self.ins.round()), HOW => {
                    map!(self, d, [a, b], |a, b| half::fadd(a, b, HOW));
                });
            }
            M::FmaV2f16 => self.fma_halves()?,
            M::FmaRscaleV2f16 => {
                let (a, b, c) = (self.halves(0)?, self.halves(1)?, self.halves(2)?);
                let e = self.source(3)?;
                let special = match self.ins.special() {
                    mali_isa::Special::N => Kind::Zero,
                    _ => Kind::None,
                };
                each_round!(round(self.ins.round()), HOW => if special == Kind::Zero {
                    map!(self, d, [a, b, c, e], |a, b, c, e| scale::fma_rscale_half(a, b, c, e, HOW, Kind::Zero));
                } else {
                    map!(self, d, [a, b, c, e], |a, b, c, e| scale::fma_rscale_half(a, b, c, e, HOW, Kind::None));
                });
            }
            M::FmaxV2f16 | M::FminV2f16 => {
                let (a, b) = (self.halves(0)?, self.halves(1)?);
                let largest = self.ins.op.mnemonic() == M::FmaxV2f16;
                each!(nan(self.ins.nan()), NAN: Nan { Suppress, Propagate, C, InverseC } => if largest {
                    map!(self, d, [a, b], |a, b| half::fmax(a, b, NAN));
                } else {
                    map!(self, d, [a, b], |a, b| half::fmin(a, b, NAN));
                });
            }
            M::FcmpV2f16 => {
                let (a, b) = (self.halves(0)?, self.halves(1)?);
                let m = u32::from(truth(self.ins.result_type()).half(true)) * 0x1_0001;
                each_compare!(compare(self.ins.compare()), HOW => self.rows(
                    loops::two(#[inline(always)] |m, a, b| half::fcmp(a, b, HOW, Truth::M1) & m),
                    d, [a, b], m,
                ));
                return Ok(true);
            }
            M::CselV2f16 => {
                let (a, b) = (self.source(0)?, self.source(1)?);
                let (c, e) = (self.source(2)?, self.source(3)?);
                each_compare!(compare(self.ins.compare()), HOW => {
                    map!(self, d, [a, b, c, e], |a, b, c, e| half::csel(a, b, c, e, HOW));
                });
                return Ok(true);
            }
            M::FroundV2f16 => {
                let a = self.halves(0)?;
                each_round!(round(self.ins.round()), HOW => {
                    map!(self, d, [a], |a| half::fround(a, HOW));
                });
            }
            M::LdexpV2f16 => {
                let (a, b) = (self.halves(0)?, self.source(1)?);
                each_round!(round(self.ins.round()), HOW => {
                    map!(self, d, [a, b], |a, b| scale::ldexp_half(a, b, HOW));
                });
            }
            M::QuietV2f16 => {
                let a = self.halves(0)?;
                map!(self, d, [a], |a| half::quiet2(a));
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.finish_halves();
        Ok(true)
    }

    fn fma_halves(&mut self) -> Result<(), Trap> {
        let d = self.dest;
        let how = round(self.ins.round());
        let single = (0..3).all(|index| matches!(self.lanes(index), Lanes::H00 | Lanes::H11));
        if how == Round::Even && single {
            let (a, b, c) = (self.low_half(0)?, self.low_half(1)?, self.low_half(2)?);
            self.rows(halves::multiply_add_low(), d, [a, b, c], 0);
            self.known_as(micro::Kind::MultiplyAddLow);
            return Ok(());
        }
        let (a, b, c) = (self.halves(0)?, self.halves(1)?, self.halves(2)?);
        match how {
            Round::Even => self.rows(halves::multiply_add(), d, [a, b, c], 0),
            other => each_round!(other, HOW => {
                map!(self, d, [a, b, c], |a, b, c| half::fma(a, b, c, HOW));
            }),
        }
        Ok(())
    }

    /// What clamp modifier and clause header make of a pair of halves.
    pub(super) fn finish_halves(&mut self) {
        let d = self.dest;
        if self.flushes() {
            map!(self, d, [d], |x| half::flush(x));
        }
        match clamp(self.ins.clamp()) {
            Clamp::None => {}
            other => each!(other, LIMITS: Clamp { None, ZeroInf, MinusOneOne, ZeroOne } => {
                map!(self, d, [d], |x| half::clamp(x, LIMITS));
            }),
        }
    }
}
