// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mantissas, exponents, functions from tables.

use gpureplay_shader::alu::cube;
use gpureplay_shader::alu::power::{self, Power};
use gpureplay_shader::alu::scale::{self, Interval};
use gpureplay_shader::alu::special::{self, ExpPart, LogPart, LogTable};
use gpureplay_shader::emit::Emit;

use super::{Side, Translator, Trap};

const INTERVALS: [Interval; 3] = [Interval::Half, Interval::Sqrt, Interval::Log];

const LOG_TABLES: [LogTable; 3] = [LogTable::Reduction, LogTable::Base2, LogTable::Natural];

const LOG_PARTS: [LogPart; 3] = [LogPart::Whole, LogPart::High, LogPart::Low];

const EXP_PARTS: [ExpPart; 3] = [ExpPart::Whole, ExpPart::LessOne, ExpPart::Low];

const POWERS: [Power; 4] = [Power::Pow, Power::Powr, Power::Pown, Power::Rootn];

#[inline(always)]
fn pick<T: Copy, const N: usize>(of: &[T; N], number: u32) -> T {
    of[(number & 0xff) as usize % N]
}

impl Translator<'_> {
    fn interval(&self) -> Interval {
        match (self.ins.sqrt(), self.ins.log()) {
            (true, _) => Interval::Sqrt,
            (_, true) => Interval::Log,
            _ => Interval::Half,
        }
    }

    pub(super) fn frexpm(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        each!(self.interval(), IN: Interval { Half, Sqrt, Log } => {
            map!(self, d, [a], |a| scale::frexpm(a, IN));
        });
        Ok(())
    }

    pub(super) fn frexpm_halves(&mut self) -> Result<(), Trap> {
        let (d, a, m) = (self.dest, self.halves(0)?, self.interval() as u32);
        rare!(self, d, [a], m, |m, a| scale::frexpm_half(
            a,
            pick(&INTERVALS, m)
        ));
        Ok(())
    }

    pub(super) fn frexpe(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single(0)?);
        if self.ins.neg0() {
            each!(self.interval(), IN: Interval { Half, Sqrt, Log } => {
                map!(self, d, [a], |a| scale::frexpe(a, IN, true));
            });
        } else {
            each!(self.interval(), IN: Interval { Half, Sqrt, Log } => {
                map!(self, d, [a], |a| scale::frexpe(a, IN, false));
            });
        }
        Ok(())
    }

    pub(super) fn frexpe_halves(&mut self) -> Result<(), Trap> {
        let (row, lanes) = (self.source(0)?, self.ins.lanes0());
        let a = self.arranged(row, lanes, false)?;
        let d = self.dest;
        let m = self.interval() as u32 | u32::from(self.ins.neg0()) << 8;
        rare!(self, d, [a], m, |m, a| {
            scale::frexpe_half(a, pick(&INTERVALS, m), m >> 8 != 0)
        });
        Ok(())
    }

    pub(super) fn logb(&mut self, integer: bool) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        if integer {
            rare!(self, d, [a], 0, |_, a| scale::ilogb(a));
        } else {
            rare!(self, d, [a], 0, |_, a| scale::logb(a));
        }
        Ok(())
    }

    pub(super) fn logb_halves(&mut self, integer: bool) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.halves(0)?);
        if integer {
            rare!(self, d, [a], 0, |_, a| scale::ilogb_half(a));
        } else {
            rare!(self, d, [a], 0, |_, a| scale::logb_half(a));
        }
        Ok(())
    }

    pub(super) fn frcp(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        map!(self, d, [a], |a| special::frcp(a));
        Ok(())
    }

    pub(super) fn frsq(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        map!(self, d, [a], |a| special::frsq(a));
        Ok(())
    }

    pub(super) fn frcp_half(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.half_source()?);
        map!(self, d, [a], |a| special::frcp_half(a as u16));
        Ok(())
    }

    pub(super) fn frsq_half(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.half_source()?);
        map!(self, d, [a], |a| special::frsq_half(a as u16));
        Ok(())
    }

    pub(super) fn frcp_approx(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        map!(self, d, [a], |a| special::frcp_approx(a));
        Ok(())
    }

    pub(super) fn frsq_approx(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        map!(self, d, [a], |a| special::frsq_approx(a));
        Ok(())
    }

    pub(super) fn flogd(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single(0)?);
        map!(self, d, [a], |a| special::flogd(a));
        Ok(())
    }

    pub(super) fn flog_table(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.single_modified(0)?);
        let table = match self.ins.log_mode() {
            mali_isa::LogMode::Red => LogTable::Reduction,
            mali_isa::LogMode::Base2 => LogTable::Base2,
            mali_isa::LogMode::Natural => LogTable::Natural,
        };
        let part = match self.ins.log_precision() {
            mali_isa::LogPrecision::None => LogPart::Whole,
            mali_isa::LogPrecision::High => LogPart::High,
            mali_isa::LogPrecision::Low => LogPart::Low,
        };
        let m = table as u32 | (part as u32) << 8;
        rare!(self, d, [a], m, |m, a| {
            special::flog_table(a, pick(&LOG_TABLES, m), pick(&LOG_PARTS, m >> 8))
        });
        Ok(())
    }

    pub(super) fn fexp_table(&mut self) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.source(0)?);
        let part = match self.ins.adjust() {
            mali_isa::Adjust::None => ExpPart::Whole,
            mali_isa::Adjust::Small => ExpPart::LessOne,
            mali_isa::Adjust::Low => ExpPart::Low,
        };
        rare!(self, d, [a], part as u32, |m, a| special::fexp_table(
            a,
            pick(&EXP_PARTS, m)
        ));
        Ok(())
    }

    pub(super) fn sine_table(&mut self, sine: bool) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.source(0)?);
        let m = u32::from(self.ins.offset());
        if sine {
            rare!(self, d, [a], m, |m, a| special::fsin_table(a, m != 0));
        } else {
            rare!(self, d, [a], m, |m, a| special::fcos_table(a, m != 0));
        }
        Ok(())
    }

    pub(super) fn power_special(&mut self, halves: bool) -> Result<(), Trap> {
        let (a, b) = if halves {
            // Integers have all 32 bits.
            let whole = self.lanes(1) == mali_isa::Lanes::None;
            let b = if whole {
                self.source(1)?
            } else {
                self.single(1)?
            };
            (self.single(0)?, b)
        } else {
            (self.source(0)?, self.source(1)?)
        };
        let kind = match self.ins.power() {
            mali_isa::Power::Pow => Power::Pow,
            mali_isa::Power::Powr => Power::Powr,
            mali_isa::Power::Pown => Power::Pown,
            mali_isa::Power::Rootn => Power::Rootn,
        };
        let d = self.dest;
        rare!(self, d, [a, b], kind as u32, |m, a, b| power::detect(
            a,
            b,
            pick(&POWERS, m)
        ));
        Ok(())
    }

    pub(super) fn cube_largest(&mut self) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.singles()?);
        let [x, y, z] = sources;
        rare!(self, d, [x, y, z], 0, |_, x, y, z| cube::largest(x, y, z));
        self.side = Side::Cube(sources);
        Ok(())
    }

    pub(super) fn cube_face(&mut self) -> Result<(), Trap> {
        let Side::Cube([x, y, z]) = self.side else {
            return Err(self.trap("needs CUBEFACE1 in the FMA unit of its tuple"));
        };
        let d = self.dest;
        rare!(self, d, [x, y, z], 0, |_, x, y, z| cube::face(x, y, z));
        Ok(())
    }

    pub(super) fn cube_select(&mut self, s: bool) -> Result<(), Trap> {
        let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
        let (c, d) = (self.source(2)?, self.dest);
        if s {
            rare!(self, d, [a, b, c], 0, |_, a, b, c| cube::select_s(a, b, c));
        } else {
            rare!(self, d, [a, b, c], 0, |_, a, b, c| cube::select_t(a, b, c));
        }
        Ok(())
    }
}
