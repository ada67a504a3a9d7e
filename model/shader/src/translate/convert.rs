// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversions and the functions that hardware computes from tables.

use mali_isa::Lanes;
use mali_isa::Mnemonic as M;

use super::float::round;
use super::{Side, Translator, Trap};
use crate::alu::lanes::Part;
use crate::alu::power::{self, Power};
use crate::alu::scale::Interval;
use crate::alu::special::{self, ExpPart, LogPart, LogTable};
use crate::alu::{Clamp, Round, convert, cube, half, scale};
use crate::operations::loops;

impl Translator<'_> {
    pub(super) fn convert(&mut self) -> Result<bool, Trap> {
        let done = self.conversion()?
            || self.exponent()?
            || self.table_function()?
            || self.power_or_cube()?;
        Ok(done)
    }

    fn conversion(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        let how = round(self.ins.round());
        match self.ins.op.mnemonic() {
            M::F32ToS32 => {
                let a = self.single_modified(0)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::f32_to_s32(a, HOW)));
            }
            M::F32ToU32 => {
                let a = self.single_modified(0)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::f32_to_u32(a, HOW)));
            }
            M::S32ToF32 => {
                let a = self.source(0)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::s32_to_f32(a, HOW)));
            }
            M::U32ToF32 => {
                let a = self.source(0)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::u32_to_f32(a, HOW)));
            }
            M::F16ToF32 => {
                let a = self.half_source()?;
                map!(self, d, [a], |a| half::to_single(a as u16));
                self.finish_single();
            }
            M::F16ToS32 => {
                let a = self.half_source()?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::f16_to_s32(a, false, HOW)));
            }
            M::F16ToU32 => {
                let a = self.half_source()?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::f16_to_u32(a, false, HOW)));
            }
            M::V2f16ToV2s16 => {
                let a = self.halves(0)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::v2f16_to_v2s16(a, HOW)));
            }
            M::V2f16ToV2u16 => {
                let a = self.halves(0)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::v2f16_to_v2u16(a, HOW)));
            }
            M::V2s16ToV2f16 => {
                let a = self.arranged_source(false)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::v2s16_to_v2f16(a, HOW)));
            }
            M::V2u16ToV2f16 => {
                let a = self.arranged_source(false)?;
                each_round!(how, HOW => map!(self, d, [a], |a| convert::v2u16_to_v2f16(a, HOW)));
            }
            M::V2s8ToV2f16 => {
                let a = self.arranged_source(true)?;
                map!(self, d, [a], |a| convert::small_halves_to_v2f16(a, true));
            }
            M::V2u8ToV2f16 => {
                let a = self.arranged_source(false)?;
                map!(self, d, [a], |a| convert::small_halves_to_v2f16(a, false));
            }
            M::V2f32ToV2f16 => {
                let (a, b) = (self.single_modified(0)?, self.single_modified(1)?);
                each_round!(how, HOW => {
                    map!(self, d, [a, b], |a, b| convert::v2f32_to_v2f16(a, b, HOW, Clamp::None));
                });
                self.finish_halves();
            }
            M::S8ToF32 | M::S16ToF32 => {
                let a = self.arranged_source(true)?;
                map!(self, d, [a], |a| convert::signed_part_to_f32(a, Part::Word));
            }
            M::U8ToF32 | M::U16ToF32 => {
                let a = self.arranged_source(false)?;
                map!(self, d, [a], |a| convert::unsigned_part_to_f32(
                    a,
                    Part::Word
                ));
            }
            M::S8ToS32 | M::S16ToS32 | M::V2s8ToV2s16 => {
                let a = self.arranged_source(true)?;
                self.copy(a, d);
            }
            M::U8ToU32 | M::U16ToU32 | M::V2u8ToV2u16 => {
                let a = self.arranged_source(false)?;
                self.copy(a, d);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn arranged_source(&mut self, signed: bool) -> Result<u16, Trap> {
        let (row, lanes) = (self.source(0)?, self.ins.lanes0());
        self.arranged(row, lanes, signed)
    }

    /// A row whose low half is the half-precision source, modifiers applied.
    fn half_source(&mut self) -> Result<u16, Trap> {
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

    /// Mantissas and exponents.
    fn exponent(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        let interval = match (self.ins.sqrt(), self.ins.log()) {
            (true, _) => Interval::Sqrt,
            (_, true) => Interval::Log,
            _ => Interval::Half,
        };
        match self.ins.op.mnemonic() {
            M::FrexpmF32 => {
                let a = self.single_modified(0)?;
                each!(interval, IN: Interval { Half, Sqrt, Log } => map!(self, d, [a], |a| scale::frexpm(a, IN)));
            }
            M::FrexpmV2f16 => {
                let a = self.halves(0)?;
                each!(interval, IN: Interval { Half, Sqrt, Log } => map!(self, d, [a], |a| scale::frexpm_half(a, IN)));
            }
            M::FrexpeF32 => {
                let a = self.single(0)?;
                if self.ins.neg0() {
                    each!(interval, IN: Interval { Half, Sqrt, Log } => map!(self, d, [a], |a| scale::frexpe(a, IN, true)));
                } else {
                    each!(interval, IN: Interval { Half, Sqrt, Log } => map!(self, d, [a], |a| scale::frexpe(a, IN, false)));
                }
            }
            M::FrexpeV2f16 => {
                let (row, lanes) = (self.source(0)?, self.ins.lanes0());
                let a = self.arranged(row, lanes, false)?;
                if self.ins.neg0() {
                    each!(interval, IN: Interval { Half, Sqrt, Log } => map!(self, d, [a], |a| scale::frexpe_half(a, IN, true)));
                } else {
                    each!(interval, IN: Interval { Half, Sqrt, Log } => map!(self, d, [a], |a| scale::frexpe_half(a, IN, false)));
                }
            }
            M::LogbF32 => {
                let a = self.single_modified(0)?;
                map!(self, d, [a], |a| scale::logb(a));
            }
            M::IlogbF32 => {
                let a = self.single_modified(0)?;
                map!(self, d, [a], |a| scale::ilogb(a));
            }
            M::LogbV2f16 => {
                let a = self.halves(0)?;
                map!(self, d, [a], |a| scale::logb_half(a));
            }
            M::IlogbV2f16 => {
                let a = self.halves(0)?;
                map!(self, d, [a], |a| scale::ilogb_half(a));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn table_function(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        match self.ins.op.mnemonic() {
            M::FrcpF32 => {
                let a = self.single_modified(0)?;
                map!(self, d, [a], |a| special::frcp(a));
            }
            M::FrsqF32 => {
                let a = self.single_modified(0)?;
                map!(self, d, [a], |a| special::frsq(a));
            }
            M::FrcpF16 => {
                let a = self.half_source()?;
                map!(self, d, [a], |a| special::frcp_half(a as u16));
            }
            M::FrsqF16 => {
                let a = self.half_source()?;
                map!(self, d, [a], |a| special::frsq_half(a as u16));
            }
            M::FrcpApproxF32 => {
                let a = self.single_modified(0)?;
                map!(self, d, [a], |a| special::frcp_approx(a));
            }
            M::FrsqApproxF32 => {
                let a = self.single_modified(0)?;
                map!(self, d, [a], |a| special::frsq_approx(a));
            }
            M::FexpF32 => self.two(loops::two(
                #[inline(always)]
                |_, x, y| special::fexp(x, y),
            ))?,
            M::FlogdF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::flogd(a));
            }
            M::FlogTableF32 => {
                let a = self.single_modified(0)?;
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
                each!(table, TABLE: LogTable { Reduction, Base2, Natural } => each!(
                    part, PART: LogPart { Whole, High, Low } =>
                    map!(self, d, [a], |a| special::flog_table(a, TABLE, PART))
                ));
            }
            M::FexpTableU4 => {
                let a = self.source(0)?;
                let part = match self.ins.adjust() {
                    mali_isa::Adjust::None => ExpPart::Whole,
                    mali_isa::Adjust::Small => ExpPart::LessOne,
                    mali_isa::Adjust::Low => ExpPart::Low,
                };
                each!(part, PART: ExpPart { Whole, LessOne, Low } => {
                    map!(self, d, [a], |a| special::fexp_table(a, PART));
                });
            }
            M::FsinTableU6 => {
                let a = self.source(0)?;
                if self.ins.offset() {
                    map!(self, d, [a], |a| special::fsin_table(a, true));
                } else {
                    map!(self, d, [a], |a| special::fsin_table(a, false));
                }
            }
            M::FcosTableU6 => {
                let a = self.source(0)?;
                if self.ins.offset() {
                    map!(self, d, [a], |a| special::fcos_table(a, true));
                } else {
                    map!(self, d, [a], |a| special::fcos_table(a, false));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn power_or_cube(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        match self.ins.op.mnemonic() {
            M::FpowScDetF16 | M::FpowScDetF32 => {
                let (a, b) = if self.ins.op.mnemonic() == M::FpowScDetF32 {
                    (self.source(0)?, self.source(1)?)
                } else {
                    // An exponent that is an integer has all 32 bits.
                    let whole = self.lanes(1) == mali_isa::Lanes::None;
                    let b = if whole {
                        self.source(1)?
                    } else {
                        self.single(1)?
                    };
                    (self.single(0)?, b)
                };
                let kind = match self.ins.power() {
                    mali_isa::Power::Pow => Power::Pow,
                    mali_isa::Power::Powr => Power::Powr,
                    mali_isa::Power::Pown => Power::Pown,
                    mali_isa::Power::Rootn => Power::Rootn,
                };
                each!(kind, KIND: Power { Pow, Powr, Pown, Rootn } => {
                    map!(self, d, [a, b], |a, b| power::detect(a, b, KIND));
                });
            }
            M::FpowScApply => self.two(loops::two(
                #[inline(always)]
                |_, x, y| power::apply(x, y),
            ))?,
            M::Cubeface1 => {
                let sources = [
                    self.single_modified(0)?,
                    self.single_modified(1)?,
                    self.single_modified(2)?,
                ];
                let [x, y, z] = sources;
                map!(self, d, [x, y, z], |x, y, z| cube::largest(x, y, z));
                self.side = Side::Cube(sources);
            }
            M::Cubeface2 => {
                let Side::Cube([x, y, z]) = self.side else {
                    return Err(self.trap("needs CUBEFACE1 in the FMA unit of its tuple"));
                };
                map!(self, d, [x, y, z], |x, y, z| cube::face(x, y, z));
            }
            M::CubeSsel | M::CubeTsel => {
                let (a, b, c) = (
                    self.single_modified(0)?,
                    self.single_modified(1)?,
                    self.source(2)?,
                );
                if self.ins.op.mnemonic() == M::CubeSsel {
                    map!(self, d, [a, b, c], |a, b, c| cube::select_s(a, b, c));
                } else {
                    map!(self, d, [a, b, c], |a, b, c| cube::select_t(a, b, c));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
