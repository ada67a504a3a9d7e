// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single-precision arithmetic.

use gpureplay_shader::alu::scale::Special;
use gpureplay_shader::alu::{Clamp, Compare, Nan, Round, Truth, float, scale};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::common::Common;
use mali_isa as isa;

use super::{Translator, Trap};

pub(super) fn round(round: isa::Round) -> Round {
    match round {
        isa::Round::Rtp => Round::Up,
        isa::Round::Rtn => Round::Down,
        isa::Round::Rtz => Round::Zero,
        isa::Round::Rtna => Round::Away,
        isa::Round::Rto => Round::Odd,
        // Overflow and underflow are as in IEEE 754.
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

impl Translator<'_> {
    pub(super) fn fadd(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        match how {
            Round::Even => map!(self, d, [a, b], |a, b| float::fadd(a, b)),
            seldom => rounded!(self, seldom, [], d, [a, b], |round, a, b| {
                float::fadd_round(a, b, round)
            }),
        }
        self.finish_single();
        Ok(())
    }

    pub(super) fn fma(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let [a, b, c] = self.singles()?;
        match how {
            Round::Even => self.multiply_add(d, [a, b, c]),
            seldom => rounded!(self, seldom, [], d, [a, b, c], |round, a, b, c| {
                float::fma_round(a, b, c, round)
            }),
        }
        self.finish_single();
        Ok(())
    }

    pub(super) fn singles(&mut self) -> Result<[u16; 3], Trap> {
        Ok([
            self.single_modified(0)?,
            self.single_modified(1)?,
            self.single_modified(2)?,
        ])
    }

    pub(super) fn fmax(&mut self, largest: bool) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        each!(nan(self.ins.nan()), NAN: Nan { Suppress, Propagate, C, InverseC } => if largest {
            map!(self, d, [a, b], |a, b| float::fmax(a, b, NAN));
        } else {
            map!(self, d, [a, b], |a, b| float::fmin(a, b, NAN));
        });
        self.finish_single();
        Ok(())
    }

    pub(super) fn fcmp(&mut self) -> Result<(), Trap> {
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        let m = truth(self.ins.result_type()).word(true);
        self.compare_singles(self.dest, [a, b], compare(self.ins.compare()), m);
        Ok(())
    }

    pub(super) fn csel_float(&mut self, narrow: bool) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.four_sources()?);
        self.select_floats(d, sources, compare(self.ins.compare()), narrow);
        Ok(())
    }

    pub(super) fn four_sources(&mut self) -> Result<[u16; 4], Trap> {
        Ok([
            self.source(0)?,
            self.source(1)?,
            self.source(2)?,
            self.source(3)?,
        ])
    }

    pub(super) fn fround(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        let how = round(self.ins.round());
        rounded!(self, how, [Even, Up, Down, Zero], d, [a], |round, a| {
            float::fround(a, round)
        });
        self.finish_single();
        Ok(())
    }

    pub(super) fn fma_rscale(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let [a, b, c] = self.singles()?;
        let e = self.source(3)?;
        match (how, self.ins.special()) {
            (Round::Even, isa::Special::None | isa::Special::Left) => {
                map!(self, d, [a, b, c, e], |a, b, c, e| {
                    scale::fma_rscale(a, b, c, e, Round::Even, Special::None)
                });
            }
            (Round::Even, isa::Special::N) => map!(self, d, [a, b, c, e], |a, b, c, e| {
                scale::fma_rscale(a, b, c, e, Round::Even, Special::Zero)
            }),
            (_, isa::Special::None | isa::Special::Left) => {
                rounded!(self, how, [], d, [a, b, c, e], |round, a, b, c, e| {
                    scale::fma_rscale(a, b, c, e, round, Special::None)
                });
            }
            (_, isa::Special::N) => {
                rounded!(self, how, [], d, [a, b, c, e], |round, a, b, c, e| {
                    scale::fma_rscale(a, b, c, e, round, Special::Zero)
                });
            }
            (_, isa::Special::Scale16) => {
                rounded!(self, how, [], d, [a, b, c, e], |round, a, b, c, e| {
                    scale::fma_rscale(a, b, c, e, round, Special::Scale16)
                });
            }
        }
        self.finish_single();
        Ok(())
    }

    pub(super) fn fadd_rscale(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        let c = self.source(2)?;
        rounded!(self, how, [Even], d, [a, b, c], |round, a, b, c| {
            scale::fadd_rscale(a, b, c, round)
        });
        self.finish_single();
        Ok(())
    }

    pub(super) fn fadd_lscale(&mut self) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        map!(self, d, [a, b], |a, b| scale::fadd_lscale(a, b));
        self.finish_single();
        Ok(())
    }

    pub(super) fn ldexp(&mut self) -> Result<(), Trap> {
        let (d, how) = (self.dest, round(self.ins.round()));
        let (a, b) = (self.single_modified(0)?, self.source(1)?);
        rounded!(self, how, [Even], d, [a, b], |round, a, b| {
            scale::ldexp(a, b, round)
        });
        self.finish_single();
        Ok(())
    }

    pub(super) fn quiet(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single(0)?);
        map!(self, d, [a], |a| float::quiet(a));
        Ok(())
    }

    pub(super) fn finish_single(&mut self) {
        let (d, header) = (self.dest, self.clause.header);
        if self.flushes() {
            map!(self, d, [d], |x| float::flush(x));
        }
        self.clamp_single(clamp(self.ins.clamp()), d);
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
