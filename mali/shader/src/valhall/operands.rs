// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources as rows.

use gpureplay_shader::alu::lanes::{Halves, Part};
use gpureplay_shader::alu::{float, half};
use gpureplay_shader::emit::{Emit, byte_named};
use gpureplay_shader::ir::{Constant, special};
use mali_isa::valhall::{Code, Kind, Operand, Special, WORD_BYTES};

use super::{Translator, Trap};
use crate::Subnormals;
use crate::stage::STAGE_WORDS;

impl Translator<'_> {
    pub(super) fn operand(&self, byte: usize) -> Result<Operand, Trap> {
        let operand = self.ins.source(byte);
        operand.ok_or_else(|| self.trap("lacks a source"))
    }

    pub(super) fn source(&mut self, byte: usize) -> Result<u16, Trap> {
        let operand = self.operand(byte)?;
        self.row(operand.code, 0)
    }

    pub(super) fn sources<const N: usize>(&mut self) -> Result<[u16; N], Trap> {
        let mut rows = [0; N];
        for (byte, row) in rows.iter_mut().enumerate() {
            *row = self.source(byte)?;
        }
        Ok(rows)
    }

    pub(super) fn pair(&mut self, byte: usize) -> Result<[u16; 2], Trap> {
        let code = self.operand(byte)?.code;
        Ok([self.row(code, 0)?, self.row(code, 1)?])
    }

    pub(super) fn row(&mut self, code: Code, word: u8) -> Result<u16, Trap> {
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
            (Some("blend_descriptor_0"), word) => {
                let word = Constant::Uniform(STAGE_WORDS + u16::from(word));
                self.program.constant(word)
            }
            // Of the next instruction: Mesa, `va_lower_blend`.
            (Some("program_counter"), word) => {
                let next = self.address.wrapping_add(WORD_BYTES as u64);
                self.number((next >> (32 * u32::from(word))) as u32)
            }
            (name, _) => {
                let name = name.unwrap_or("a reserved value");
                return Err(self.trap(&format!("reads {name}, which is not translated")));
            }
        })
    }

    fn cannot_select(&self, name: &str) -> Trap {
        self.trap(&format!("selects {name}, which is not translated"))
    }

    pub(super) fn selected(&self, byte: usize) -> Result<Part, Trap> {
        let operand = self.operand(byte)?;
        // Some kinds order two halves: the first counts.
        let halves = matches!(operand.kind, Kind::I16S | Kind::F16S);
        Ok(match operand.selected() {
            Some("h01") if halves => Part::H0,
            Some("h10") if halves => Part::H1,
            None | Some("none" | "h01") => Part::Word,
            Some("h0" | "h00") => Part::H0,
            Some("h1" | "h11") => Part::H1,
            Some("b0" | "b00") => Part::B0,
            Some("b1" | "b11") => Part::B1,
            Some("b2" | "b22") => Part::B2,
            Some("b3" | "b33") => Part::B3,
            Some(other) => return Err(self.cannot_select(other)),
        })
    }

    pub(super) fn counting_byte(&self, byte: usize) -> Result<u8, Trap> {
        Ok(match self.selected(byte)? {
            Part::B0 => 0,
            Part::B1 => 1,
            Part::B2 => 2,
            Part::B3 => 3,
            _ => return Err(self.trap("counts by no byte")),
        })
    }

    pub(super) fn scalar(&mut self, byte: usize, signed: bool) -> Result<u16, Trap> {
        let (row, part) = (self.source(byte)?, self.selected(byte)?);
        self.part(row, part, signed)
    }

    pub(super) fn arranged(&mut self, byte: usize, signed: bool) -> Result<u16, Trap> {
        let operand = self.operand(byte)?;
        let row = self.row(operand.code, 0)?;
        let Some(name) = operand.selected() else {
            return Ok(row);
        };
        match operand.kind {
            Kind::I32W | Kind::I32S | Kind::BYTE => {
                let part = self.selected(byte)?;
                self.part(row, part, signed)
            }
            Kind::I8W => {
                let byte = |at| byte_named(name, at);
                self.bytes_ordered(row, [byte(0), byte(1), byte(2), byte(3)])
            }
            Kind::I16W | Kind::I16S | Kind::F16S | Kind::HALVES => {
                let order = match name {
                    "h00" => Halves::H00,
                    "h10" => Halves::H10,
                    "h01" => Halves::H01,
                    "h11" => Halves::H11,
                    bytes => {
                        let bytes = [byte_named(bytes, 0), byte_named(bytes, 1)];
                        return self.bytes_as_halves(row, bytes, signed);
                    }
                };
                self.ordered(row, order)
            }
            _ => Err(self.cannot_select(name)),
        }
    }

    pub(super) fn elements(&mut self, signed: bool) -> Result<[u16; 2], Trap> {
        Ok([self.arranged(0, signed)?, self.arranged(1, signed)?])
    }

    pub(super) fn single(&mut self, byte: usize) -> Result<u16, Trap> {
        let (operand, mut row) = (self.operand(byte)?, self.source(byte)?);
        let part = self.selected(byte)?;
        if part != Part::Word {
            row = self.widened(row, part)?;
        }
        if self.subnormals != Subnormals::Kept {
            let flushed = self.temporary()?;
            map!(self, flushed, [row], |x| float::flush(x));
            row = flushed;
        }
        self.signed(row, operand, 0x8000_0000)
    }

    pub(super) fn halves(&mut self, byte: usize) -> Result<u16, Trap> {
        let (operand, row) = (self.operand(byte)?, self.arranged(byte, false)?);
        self.modified_halves(row, operand)
    }

    pub(super) fn low_half(&mut self, byte: usize) -> Result<u16, Trap> {
        let (operand, mut row) = (self.operand(byte)?, self.source(byte)?);
        if self.selected(byte)? == Part::H1 {
            row = self.part(row, Part::H1, false)?;
        }
        self.modified_halves(row, operand)
    }

    fn modified_halves(&mut self, mut row: u16, operand: Operand) -> Result<u16, Trap> {
        if self.subnormals == Subnormals::Flushed {
            let flushed = self.temporary()?;
            map!(self, flushed, [row], |x| half::flush(x));
            row = flushed;
        }
        self.signed(row, operand, 0x8000_8000)
    }

    fn signed(&mut self, row: u16, operand: Operand, signs: u32) -> Result<u16, Trap> {
        let keep = if operand.absolute { !signs } else { u32::MAX };
        let flip = if operand.negate { signs } else { 0 };
        self.modified(row, keep, flip)
    }
}
