// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operands as rows.

use gpureplay_shader::alu::lanes::{Halves, Part};
use gpureplay_shader::alu::{float, half};
use gpureplay_shader::emit::{Emit, byte_named};
use gpureplay_shader::ir::{Constant, special};
use gpureplay_shader::operations::loops;
use mali_isa::{Fau, Lanes, Operand, Source};

use super::{Translator, Trap};
use crate::stage::STAGE_WORDS;

impl Translator<'_> {
    pub(super) fn source(&mut self, index: usize) -> Result<u16, Trap> {
        let source = self.ins.sources().get(index).copied();
        let source = source.ok_or_else(|| self.trap("lacks a source"))?;
        self.selected(source)
    }

    pub(super) fn selected(&mut self, source: Source) -> Result<u16, Trap> {
        let operand = self.tuple.operand(self.unit, source);
        let operand = operand.ok_or_else(|| self.trap("reads a port that is not connected"))?;
        self.row(operand)
    }

    fn row(&mut self, operand: Operand) -> Result<u16, Trap> {
        Ok(match operand {
            Operand::Register(register) => {
                self.reads(register);
                register.into()
            }
            Operand::Zero => self.number(0),
            Operand::Stage => self.stage,
            Operand::T0 => self.t0,
            Operand::T1 => self.t1,
            Operand::FauLow(fau) => self.fau(fau, false)?,
            Operand::FauHigh(fau) => self.fau(fau, true)?,
            Operand::Pair(_) | Operand::FauWide(_) => {
                return Err(self.trap("mixes 32-bit and 64-bit operands"));
            }
        })
    }

    pub(super) fn fau(&mut self, fau: Fau, high: bool) -> Result<u16, Trap> {
        Ok(match fau {
            Fau::LaneId if !high => {
                self.program.sees_warp = true;
                special::LANE_ID
            }
            Fau::WarpId if !high => {
                self.program.sees_warp = true;
                special::WARP_ID
            }
            Fau::CoreId if !high => special::CORE_ID,
            Fau::Uniform(slot) => self
                .program
                .constant(Constant::Uniform(2 * u16::from(slot) + u16::from(high))),
            Fau::Blend(0) => {
                let word = Constant::Uniform(STAGE_WORDS + u16::from(high));
                self.program.constant(word)
            }
            Fau::Constant {
                value, relative, ..
            } => {
                let value = relative.resolve(value, self.address);
                self.number(if high {
                    (value >> 32) as u32
                } else {
                    value as u32
                })
            }
            Fau::Missing(_) | Fau::Reserved(_) => {
                return Err(self.trap("reads a reserved FAU index"));
            }
            // Values of fragments, zero here, and high words of ids.
            _ => self.number(0),
        })
    }

    /// Without `abs` and `neg`.
    pub(super) fn single(&mut self, index: usize) -> Result<u16, Trap> {
        let mut row = self.source(index)?;
        let lanes = self.lanes(index);
        match lanes {
            Lanes::H0 => row = self.widened(row, Part::H0)?,
            Lanes::H1 => row = self.widened(row, Part::H1)?,
            _ => {}
        }
        if self.flushes() {
            let flushed = self.temporary()?;
            self.rows(
                loops::one(
                    #[inline(always)]
                    |_, x| float::flush(x),
                ),
                flushed,
                [row],
                0,
            );
            row = flushed;
        }
        Ok(row)
    }

    pub(super) fn single_modified(&mut self, index: usize) -> Result<u16, Trap> {
        let row = self.single(index)?;
        let (abs, neg) = self.signs(index);
        self.modified(
            row,
            if abs { 0x7fff_ffff } else { u32::MAX },
            if neg { 1 << 31 } else { 0 },
        )
    }

    pub(super) fn halves(&mut self, index: usize) -> Result<u16, Trap> {
        let row = self.source(index)?;
        let lanes = self.lanes(index);
        let row = self.arranged(row, lanes, false)?;
        self.modified_halves(row, index)
    }

    /// Of lanes `h00` or `h11`, modified.
    pub(super) fn low_half(&mut self, index: usize) -> Result<u16, Trap> {
        let mut row = self.source(index)?;
        if self.lanes(index) == Lanes::H11 {
            row = self.part(row, Part::H1, false)?;
        }
        self.modified_halves(row, index)
    }

    fn modified_halves(&mut self, mut row: u16, index: usize) -> Result<u16, Trap> {
        if self.flushes() {
            let flushed = self.temporary()?;
            self.rows(
                loops::one(
                    #[inline(always)]
                    |_, x| half::flush(x),
                ),
                flushed,
                [row],
                0,
            );
            row = flushed;
        }
        let (abs, neg) = self.signs(index);
        self.modified(
            row,
            if abs { 0x7fff_7fff } else { u32::MAX },
            if neg { 0x8000_8000 } else { 0 },
        )
    }

    pub(super) fn signs(&self, index: usize) -> (bool, bool) {
        match index {
            0 => (self.ins.abs0(), self.ins.neg0()),
            1 => (self.ins.abs1(), self.ins.neg1()),
            _ => (self.ins.abs2(), self.ins.neg2()),
        }
    }

    pub(super) fn lanes(&self, index: usize) -> Lanes {
        match index {
            0 => self.ins.lanes0(),
            1 => self.ins.lanes1(),
            2 => self.ins.lanes2(),
            _ => self.ins.lanes3(),
        }
    }

    pub(super) fn flushes(&self) -> bool {
        self.clause.header.flush_to_zero != mali_isa::FlushToZero::None
    }

    /// Extended to the elements' width.
    pub(super) fn arranged(&mut self, row: u16, lanes: Lanes, signed: bool) -> Result<u16, Trap> {
        match lanes {
            Lanes::None | Lanes::W0 | Lanes::D0 | Lanes::H01 | Lanes::B0123 => Ok(row),
            Lanes::H0 => self.part(row, Part::H0, signed),
            Lanes::H1 => self.part(row, Part::H1, signed),
            Lanes::B0 => self.part(row, Part::B0, signed),
            Lanes::B1 => self.part(row, Part::B1, signed),
            Lanes::B2 => self.part(row, Part::B2, signed),
            Lanes::B3 => self.part(row, Part::B3, signed),
            Lanes::H00 => self.ordered(row, Halves::H00),
            Lanes::H10 => self.ordered(row, Halves::H10),
            Lanes::H11 => self.ordered(row, Halves::H11),
            Lanes::B0000
            | Lanes::B1111
            | Lanes::B2222
            | Lanes::B3333
            | Lanes::B0011
            | Lanes::B2233
            | Lanes::B0101
            | Lanes::B2323
            | Lanes::B1032
            | Lanes::B3210 => {
                let byte = |at| byte_named(lanes.name(), at);
                self.bytes_ordered(row, [byte(0), byte(1), byte(2), byte(3)])
            }
            pair => {
                let byte = |at| byte_named(pair.name(), at);
                self.bytes_as_halves(row, [byte(0), byte(1)], signed)
            }
        }
    }
}
