// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mantissas, exponents, and functions of hardware tables.

use gpureplay_shader::alu::scale::{self, Interval};
use gpureplay_shader::alu::{cube, float, half, special};
use gpureplay_shader::emit::Emit;
use mali_isa::valhall::{FLUSH_INF, FTZ, LOG, NAN_MODE, Op, SQRT};

use super::{Translator, Trap};

/// Of `FLUSH`: to zero, or to the largest number.
const QUIETS: u32 = 1;
const NO_NAN: u32 = 2;
const NO_SUBNORMAL: u32 = 4;
const NO_INFINITY: u32 = 8;

impl Translator<'_> {
    pub(super) fn table(&mut self, op: Op) -> Result<bool, Trap> {
        let d = self.dest;
        match op {
            Op::FrcpF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::frcp(a));
            }
            Op::FrsqF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::frsq(a));
            }
            Op::FrcpApproxF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::frcp_approx(a));
            }
            Op::FrsqApproxF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::frsq_approx(a));
            }
            // Its upper half alone is unknown.
            Op::FrcpF16 | Op::FrsqF16 if self.ins.destination().is_some_and(|to| !to.low) => {
                return Err(self.trap("writes an upper half"));
            }
            Op::FrcpF16 => {
                let a = self.low_half(0)?;
                map!(self, d, [a], |a| special::frcp_half(a as u16));
            }
            Op::FrsqF16 => {
                let a = self.low_half(0)?;
                map!(self, d, [a], |a| special::frsq_half(a as u16));
            }
            Op::FsinTableU6 => {
                let a = self.source(0)?;
                rare!(self, d, [a], 0, |_, a| special::fsin_table(a, false));
            }
            Op::FcosTableU6 => {
                let a = self.source(0)?;
                rare!(self, d, [a], 0, |_, a| special::fcos_table(a, false));
            }
            Op::FlogdF32 => {
                let a = self.single(0)?;
                map!(self, d, [a], |a| special::flogd(a));
            }
            Op::FexpF32 => {
                let [a, b] = [self.source(0)?, self.single(1)?];
                map!(self, d, [a, b], |a, b| special::fexp(a, b));
                self.limit();
            }
            Op::FrexpmF32 => {
                let a = self.single(0)?;
                each!(self.interval(), IN: Interval { Half, Sqrt, Log } => {
                    map!(self, d, [a], |a| scale::frexpm(a, IN));
                });
            }
            Op::FrexpeF32 => {
                let a = self.single(0)?;
                each!(self.interval(), IN: Interval { Half, Sqrt, Log } => {
                    map!(self, d, [a], |a| scale::frexpe(a, IN, false));
                });
            }
            Op::FrexpmV2f16 => {
                let a = self.halves(0)?;
                each!(self.interval(), IN: Interval { Half, Sqrt, Log } => {
                    rare!(self, d, [a], 0, |_, a| scale::frexpm_half(a, IN));
                });
            }
            Op::FrexpeV2f16 => {
                let a = self.halves(0)?;
                each!(self.interval(), IN: Interval { Half, Sqrt, Log } => {
                    rare!(self, d, [a], 0, |_, a| scale::frexpe_half(a, IN, false));
                });
            }
            Op::FlushF32 | Op::FlushV2f16 => self.flush(op == Op::FlushV2f16)?,
            Op::Cubeface1 | Op::Cubeface2V9 => {
                let [x, y, z] = [self.single(0)?, self.single(1)?, self.single(2)?];
                if op == Op::Cubeface1 {
                    rare!(self, d, [x, y, z], 0, |_, x, y, z| cube::largest(x, y, z));
                } else {
                    rare!(self, d, [x, y, z], 0, |_, x, y, z| cube::face(x, y, z));
                }
            }
            Op::CubeSsel | Op::CubeTsel => {
                let [a, b, c] = [self.single(0)?, self.single(1)?, self.source(2)?];
                if op == Op::CubeSsel {
                    rare!(self, d, [a, b, c], 0, |_, a, b, c| cube::select_s(a, b, c));
                } else {
                    rare!(self, d, [a, b, c], 0, |_, a, b, c| cube::select_t(a, b, c));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn interval(&self) -> Interval {
        let has = |field| self.ins.value(field) == Some(1);
        match (has(&SQRT), has(&LOG)) {
            (true, _) => Interval::Sqrt,
            (_, true) => Interval::Log,
            _ => Interval::Half,
        }
    }

    fn flush(&mut self, narrow: bool) -> Result<(), Trap> {
        let nan = match self.ins.named(&NAN_MODE) {
            Some("flush_nan") => NO_NAN,
            Some("quiet_nan") => QUIETS,
            _ => 0,
        };
        let bit = |field, bit| {
            if self.ins.value(field) == Some(1) {
                bit
            } else {
                0
            }
        };
        let m = nan | bit(&FTZ, NO_SUBNORMAL) | bit(&FLUSH_INF, NO_INFINITY);
        let d = self.dest;
        if narrow {
            let a = self.halves(0)?;
            rare!(self, d, [a], m, |m, a| {
                gpureplay_shader::alu::lanes::each_half(a, |h| flushed_half(m, h))
            });
        } else {
            let a = self.single(0)?;
            rare!(self, d, [a], m, |m, a| flushed(m, a));
        }
        Ok(())
    }
}

fn flushed(m: u32, x: u32) -> u32 {
    match x & 0x7fff_ffff {
        a if a > 0x7f80_0000 && m & NO_NAN != 0 => 0,
        a if a > 0x7f80_0000 && m & QUIETS != 0 => float::quiet(x),
        0x7f80_0000 if m & NO_INFINITY != 0 => x - 1,
        a if a < 0x80_0000 && m & NO_SUBNORMAL != 0 => x & 0x8000_0000,
        _ => x,
    }
}

fn flushed_half(m: u32, h: u16) -> u16 {
    match h & 0x7fff {
        a if a > 0x7c00 && m & NO_NAN != 0 => 0,
        a if a > 0x7c00 && m & QUIETS != 0 => half::quiet(h),
        0x7c00 if m & NO_INFINITY != 0 => h - 1,
        a if a < 0x400 && m & NO_SUBNORMAL != 0 => h & 0x8000,
        _ => h,
    }
}
