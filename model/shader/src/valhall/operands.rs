// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources as rows: registers, uniforms, constants, special values, and parts of them.

use mali_valhall::{Code, Operand, Special};

use super::Translator;
use crate::alu::half;
use crate::alu::lanes::Part;
use crate::ir::{Constant, special};
use crate::translate::Trap;

impl Translator<'_> {
    /// The source in a byte of the word.
    pub(super) fn operand(&self, byte: usize) -> Result<Operand, Trap> {
        let operand = self.ins.source(byte);
        operand.ok_or_else(|| self.trap("lacks a source"))
    }

    /// The row of the source in a byte, as it is.
    pub(super) fn source(&mut self, byte: usize) -> Result<u16, Trap> {
        let operand = self.operand(byte)?;
        self.row(operand.code, 0)
    }

    /// The rows of a source of 64 bits.
    pub(super) fn pair(&mut self, byte: usize) -> Result<[u16; 2], Trap> {
        let code = self.operand(byte)?.code;
        Ok([self.row(code, 0)?, self.row(code, 1)?])
    }

    /// Remembers that a register's first value may be seen.
    pub(super) fn reads(&mut self, register: u8) {
        self.program.visible |= 1 << (register & 63);
    }

    fn row(&mut self, code: Code, word: u8) -> Result<u16, Trap> {
        Ok(match code {
            Code::Register { index, .. } => {
                let register = (index + word) & 63;
                self.reads(register);
                register.into()
            }
            Code::Uniform(index) => {
                let word = u16::from(index) + u16::from(word);
                self.program.constant(Constant::Uniform(word))
            }
            Code::Constant(_) => {
                // In the place of 64 bits it is extended by zeros.
                let value = code.constant().filter(|_| word == 0);
                self.number(value.unwrap_or(0))
            }
            Code::Special(special) => self.special(special, word)?,
        })
    }

    fn special(&mut self, value: Special, word: u8) -> Result<u16, Trap> {
        let word = value.word | word;
        Ok(match (value.name(), word) {
            (Some("lane_id"), 0) => {
                self.program.sees_warp = true;
                special::LANE_ID
            }
            (Some("warp_id"), 0) => {
                self.program.sees_warp = true;
                special::WARP_ID
            }
            (Some("core_id"), 0) => special::CORE_ID,
            (Some("lane_id" | "warp_id" | "core_id"), _) => self.number(0),
            (Some("thread_local_pointer"), 0) => special::THREAD_LOW,
            (Some("thread_local_pointer"), _) => special::THREAD_HIGH,
            (Some("workgroup_local_pointer"), 0) => special::WORKGROUP_LOW,
            (Some("workgroup_local_pointer"), _) => special::WORKGROUP_HIGH,
            (name, _) => {
                let name = name.unwrap_or("a reserved value");
                return Err(self.trap(&format!("reads {name}, which is not translated")));
            }
        })
    }

    /// The part of a source that its select names.
    pub(super) fn selected(&self, byte: usize) -> Result<Part, Trap> {
        let operand = self.operand(byte)?;
        Ok(match operand.selected() {
            None | Some("none" | "h01") => Part::Word,
            Some("h0" | "h00") => Part::H0,
            Some("h1" | "h11") => Part::H1,
            Some("b0" | "b00") => Part::B0,
            Some("b1" | "b11") => Part::B1,
            Some("b2" | "b22") => Part::B2,
            Some("b3" | "b33") => Part::B3,
            Some(other) => {
                return Err(self.trap(&format!("selects {other}, which is not translated")));
            }
        })
    }

    /// An integer source: the part that is meant, extended to 32 bits.
    pub(super) fn integer_source(&mut self, byte: usize, signed: bool) -> Result<u16, Trap> {
        let (row, part) = (self.source(byte)?, self.selected(byte)?);
        self.part(row, part, signed)
    }

    /// A part of a row, extended to 32 bits.
    pub(super) fn part(&mut self, row: u16, part: Part, signed: bool) -> Result<u16, Trap> {
        if part == Part::Word {
            return Ok(row);
        }
        let (left, right) = part.shifts();
        let (to, left, right) = (self.temporary()?, self.number(left), self.number(right));
        if signed {
            map!(self, to, [row, left, right], |x, left, right| {
                ((x << (left & 31)) as i32 >> (right & 31)) as u32
            });
        } else {
            map!(self, to, [row, left, right], |x, left, right| {
                x << (left & 31) >> (right & 31)
            });
        }
        Ok(to)
    }

    /// A single-precision source with all its modifiers.
    pub(super) fn single(&mut self, byte: usize) -> Result<u16, Trap> {
        let (operand, mut row) = (self.operand(byte)?, self.source(byte)?);
        let part = self.selected(byte)?;
        if part != Part::Word {
            let narrow = self.part(row, part, false)?;
            let wide = self.temporary()?;
            map!(self, wide, [narrow], |x| half::to_single(x as u16));
            row = wide;
        }
        if !operand.absolute && !operand.negate {
            return Ok(row);
        }
        let keep = if operand.absolute {
            0x7fff_ffff
        } else {
            u32::MAX
        };
        let flip = if operand.negate { 1 << 31 } else { 0 };
        let (to, keep, flip) = (self.temporary()?, self.number(keep), self.number(flip));
        map!(self, to, [row, keep, flip], |x, keep, flip| x & keep ^ flip);
        Ok(to)
    }
}
