// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversions between integers, halves and singles.

use gpureplay_shader::alu::lanes::Part;
use gpureplay_shader::alu::{Clamp, Round, convert, half};
use gpureplay_shader::emit::Emit;
use mali_isa::valhall::Op;

use super::{Translator, Trap};

impl Translator<'_> {
    pub(super) fn convert(&mut self, op: Op) -> Result<bool, Trap> {
        let (d, how) = (self.dest, self.round());
        match op {
            Op::S8ToS32 | Op::S16ToS32 => {
                let a = self.scalar(0, true)?;
                self.copy(a, d);
            }
            Op::U8ToU32 | Op::U16ToU32 => {
                let a = self.scalar(0, false)?;
                self.copy(a, d);
            }
            Op::V2s8ToV2s16 | Op::V2u8ToV2u16 => {
                let a = self.arranged(0, op == Op::V2s8ToV2s16)?;
                self.copy(a, d);
            }
            Op::S8ToF32 | Op::S16ToF32 => {
                let a = self.scalar(0, true)?;
                map!(self, d, [a], |a| convert::signed_part_to_f32(a, Part::Word));
            }
            Op::U8ToF32 | Op::U16ToF32 => {
                let a = self.scalar(0, false)?;
                map!(self, d, [a], |a| convert::unsigned_part_to_f32(
                    a,
                    Part::Word
                ));
            }
            Op::S32ToF32 => {
                let a = self.scalar(0, true)?;
                rounded!(self, how, [Even], d, [a], |round, a| {
                    convert::s32_to_f32(a, round)
                });
            }
            Op::U32ToF32 => {
                let a = self.scalar(0, false)?;
                rounded!(self, how, [Even], d, [a], |round, a| {
                    convert::u32_to_f32(a, round)
                });
            }
            Op::F32ToS32 => {
                let a = self.single(0)?;
                rounded!(self, how, [Even, Zero], d, [a], |round, a| {
                    convert::f32_to_s32(a, round)
                });
            }
            Op::F32ToU32 => {
                let a = self.single(0)?;
                rounded!(self, how, [Even, Zero], d, [a], |round, a| {
                    convert::f32_to_u32(a, round)
                });
            }
            Op::F16ToS32 => {
                let a = self.low_half(0)?;
                rounded!(self, how, [Zero], d, [a], |round, a| {
                    convert::f16_to_s32(a, false, round)
                });
            }
            Op::F16ToU32 => {
                let a = self.low_half(0)?;
                rounded!(self, how, [Zero], d, [a], |round, a| {
                    convert::f16_to_u32(a, false, round)
                });
            }
            Op::F16ToF32 => {
                let a = self.low_half(0)?;
                map!(self, d, [a], |a| half::to_single(a as u16));
                self.limit();
            }
            Op::V2f16ToV2s16 => {
                let a = self.halves(0)?;
                rounded!(self, how, [Zero], d, [a], |round, a| {
                    convert::v2f16_to_v2s16(a, round)
                });
            }
            Op::V2f16ToV2u16 => {
                let a = self.halves(0)?;
                rounded!(self, how, [Zero], d, [a], |round, a| {
                    convert::v2f16_to_v2u16(a, round)
                });
            }
            Op::V2s16ToV2f16 => {
                let a = self.arranged(0, true)?;
                rounded!(self, how, [Even], d, [a], |round, a| {
                    convert::v2s16_to_v2f16(a, round)
                });
            }
            Op::V2u16ToV2f16 => {
                let a = self.arranged(0, false)?;
                rounded!(self, how, [Even], d, [a], |round, a| {
                    convert::v2u16_to_v2f16(a, round)
                });
            }
            Op::V2s8ToV2f16 => {
                let a = self.arranged(0, true)?;
                map!(self, d, [a], |a| convert::small_halves_to_v2f16(a, true));
            }
            Op::V2u8ToV2f16 => {
                let a = self.arranged(0, false)?;
                map!(self, d, [a], |a| convert::small_halves_to_v2f16(a, false));
            }
            Op::V2f32ToV2f16 => {
                let [a, b] = [self.single(0)?, self.single(1)?];
                rounded!(self, how, [Even], d, [a, b], |round, a, b| {
                    convert::v2f32_to_v2f16(a, b, round, Clamp::None)
                });
                self.limit_halves();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
