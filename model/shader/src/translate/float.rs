// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single-precision arithmetic, comparison and selection.

use mali_isa as isa;
use mali_isa::Mnemonic as M;

use super::{Translator, Trap};
use crate::alu::{Clamp, Compare, Nan, Round, Truth, float, scale};
use crate::ir::micro;
use crate::operations::loops;

pub(super) fn round(round: isa::Round) -> Round {
    match round {
        isa::Round::Rtp => Round::Up,
        isa::Round::Rtn => Round::Down,
        isa::Round::Rtz => Round::Zero,
        isa::Round::Rtna => Round::Away,
        isa::Round::Rto => Round::Odd,
        // What happens on overflow and underflow is as in IEEE 754 in all modes.
        isa::Round::None | isa::Round::Inf | isa::Round::Inf0 => Round::Even,
    }
}

pub(super) fn clamp(clamp: isa::Clamp) -> Clamp {
    match clamp {
        isa::Clamp::None => Clamp::None,
        isa::Clamp::Clamp0Inf => Clamp::ZeroInf,
        isa::Clamp::ClampM11 => Clamp::MinusOneOne,
        isa::Clamp::Clamp01 => Clamp::ZeroOne,
    }
}

pub(super) fn compare(compare: isa::Compare) -> Compare {
    match compare {
        isa::Compare::Eq => Compare::Eq,
        isa::Compare::Gt => Compare::Gt,
        isa::Compare::Ge => Compare::Ge,
        isa::Compare::Ne => Compare::Ne,
        isa::Compare::Lt => Compare::Lt,
        isa::Compare::Le => Compare::Le,
        isa::Compare::Gtlt => Compare::GtLt,
        isa::Compare::Total => Compare::Total,
    }
}

pub(super) fn truth(truth: isa::ResultType) -> Truth {
    match truth {
        isa::ResultType::I1 => Truth::I1,
        isa::ResultType::F1 => Truth::F1,
        isa::ResultType::M1 => Truth::M1,
    }
}

pub(super) fn nan(nan: isa::NanRule) -> Nan {
    match nan {
        isa::NanRule::NanSuppress => Nan::Suppress,
        isa::NanRule::NanPropagate => Nan::Propagate,
        isa::NanRule::C => Nan::C,
        isa::NanRule::InverseC => Nan::InverseC,
    }
}

fn special(special: isa::Special) -> scale::Special {
    match special {
        isa::Special::None => scale::Special::None,
        isa::Special::N => scale::Special::Zero,
        isa::Special::Left => scale::Special::Left,
        isa::Special::Scale16 => scale::Special::Scale16,
    }
}

impl Translator<'_> {
    pub(super) fn float(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        match self.ins.op.mnemonic() {
            M::FaddF32 => self.fadd()?,
            M::FmaF32 => self.fma()?,
            M::FmaxF32 | M::FminF32 => {
                let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
                let largest = self.ins.op.mnemonic() == M::FmaxF32;
                each!(nan(self.ins.nan()), NAN: Nan { Suppress, Propagate, C, InverseC } => if largest {
                    map!(self, d, [a, b], |a, b| float::fmax(a, b, NAN));
                } else {
                    map!(self, d, [a, b], |a, b| float::fmin(a, b, NAN));
                });
            }
            M::FcmpF32 => {
                let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
                let m = truth(self.ins.result_type()).word(true);
                each_compare!(compare(self.ins.compare()), HOW => self.rows(
                    loops::two(#[inline(always)] |m, a, b| float::fcmp(a, b, HOW, Truth::M1) & m),
                    d, [a, b], m,
                ));
                return Ok(true);
            }
            M::CselF32 => {
                let (a, b) = (self.source(0)?, self.source(1)?);
                let (c, e) = (self.source(2)?, self.source(3)?);
                each_compare!(compare(self.ins.compare()), HOW => {
                    map!(self, d, [a, b, c, e], |a, b, c, e| float::csel(a, b, c, e, HOW));
                });
                return Ok(true);
            }
            M::FroundF32 => {
                let a = self.single_modified(0)?;
                each_round!(round(self.ins.round()), HOW => {
                    map!(self, d, [a], |a| float::fround(a, HOW));
                });
            }
            M::FmaRscaleF32 => {
                let (a, b, c) = (
                    self.single_modified(0)?,
                    self.single_modified(1)?,
                    self.single_modified(2)?,
                );
                let e = self.source(3)?;
                let special = special(self.ins.special());
                each_round!(round(self.ins.round()), HOW => each!(
                    special, SPECIAL: Kind { None, Zero, Left, Scale16 } =>
                    map!(self, d, [a, b, c, e], |a, b, c, e| scale::fma_rscale(a, b, c, e, HOW, SPECIAL))
                ));
            }
            M::FaddRscaleF32 => {
                let (a, b, c) = (
                    self.single_modified(0)?,
                    self.single_modified(1)?,
                    self.source(2)?,
                );
                each_round!(round(self.ins.round()), HOW => {
                    map!(self, d, [a, b, c], |a, b, c| scale::fadd_rscale(a, b, c, HOW));
                });
            }
            M::FaddLscaleF32 => {
                let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
                map!(self, d, [a, b], |a, b| scale::fadd_lscale(a, b));
            }
            M::LdexpF32 => {
                let (a, b) = (self.single_modified(0)?, self.source(1)?);
                each_round!(round(self.ins.round()), HOW => {
                    map!(self, d, [a, b], |a, b| scale::ldexp(a, b, HOW));
                });
            }
            M::QuietF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| float::quiet(a));
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.finish_single();
        Ok(true)
    }

    fn fadd(&mut self) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        match round(self.ins.round()) {
            Round::Even => map!(self, d, [a, b], |a, b| float::fadd(a, b)),
            other => {
                each_round!(other, HOW => map!(self, d, [a, b], |a, b| float::fadd_round(a, b, HOW)))
            }
        }
        Ok(())
    }

    fn fma(&mut self) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b, c) = (
            self.single_modified(0)?,
            self.single_modified(1)?,
            self.single_modified(2)?,
        );
        match round(self.ins.round()) {
            Round::Even if crate::vectors::has_fused_multiply_add() => {
                map!(self, d, [a, b, c], |a, b, c| float::fma(a, b, c));
                self.known_as(micro::Kind::MultiplyAdd);
            }
            Round::Even => map!(self, d, [a, b, c], |a, b, c| float::fma_portable(a, b, c)),
            other => each_round!(other, HOW => {
                map!(self, d, [a, b, c], |a, b, c| float::fma_round(a, b, c, HOW));
            }),
        }
        Ok(())
    }

    /// What clamp modifier and clause header make of a single-precision result.
    pub(super) fn finish_single(&mut self) {
        let (d, header) = (self.dest, self.clause.header);
        if self.flushes() {
            map!(self, d, [d], |x| float::flush(x));
        }
        match clamp(self.ins.clamp()) {
            Clamp::None => {}
            other => each!(other, LIMITS: Clamp { None, ZeroInf, MinusOneOne, ZeroOne } => {
                map!(self, d, [d], |x| float::clamp(x, LIMITS));
            }),
        }
        if header.suppress_infinity {
            map!(self, d, [d], |x| if x & 0x7fff_ffff == 0x7f80_0000 {
                x - 1
            } else {
                x
            });
        }
        if header.suppress_nan {
            map!(self, d, [d], |x| if float::is_nan(x) { 0 } else { x });
        }
    }
}

use scale::Special as Kind;
