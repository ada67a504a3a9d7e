// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores.

use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::common::Common;
use gpureplay_shader::ir::micro::{Kind, OnMemory};
use gpureplay_shader::operations::memory::load_of;
use gpureplay_shader::operations::uniform::load_uniform;
use mali_isa::Message;
use mali_isa::valhall::{
    Field, LOAD_LANE_8_BIT, LOAD_LANE_16_BIT, LOAD_LANE_32_BIT, OFFSET, Op, Registers, UNSIGNED,
};

use super::{Translator, Trap};

pub(super) fn counted(op: Op) -> Option<Message> {
    match op.row().registers {
        _ if op == Op::Barrier => Some(Message::Barrier),
        _ if is_atomic(op) => Some(Message::Atomic),
        Registers::Loads => Some(Message::Load),
        Registers::Stores => Some(Message::Store),
        Registers::Fetches => Some(Message::Tex),
        _ => None,
    }
}

fn is_atomic(op: Op) -> bool {
    matches!(
        op,
        Op::AtomI32
            | Op::AtomI64
            | Op::AtomReturnI32
            | Op::AtomReturnI64
            | Op::Atom1ReturnI32
            | Op::Atom1ReturnI64
    )
}

/// Per lane, in sixteenths of a clause.
pub(super) fn cost(op: Op) -> u32 {
    match op.row().registers {
        _ if is_atomic(op) => 16,
        Registers::Fetches => 128,
        _ => 0,
    }
}

enum Into {
    Whole,
    Words(u32),
    /// The lowest, and how many.
    Part(u32, u32),
}

impl Translator<'_> {
    pub(super) fn staging(&self, count: u32) -> Result<u16, Trap> {
        let group = self.ins.staging().next();
        let group = group.filter(|group| u32::from(group.count) == count);
        let group = group.ok_or_else(|| self.trap("has another number of registers"))?;
        Ok(group.first.into())
    }

    pub(super) fn address(&mut self, offset: &'static Field) -> Result<[u16; 2], Trap> {
        let [low, high] = self.pair(0)?;
        let offset = self.ins.value(offset).unwrap_or(0);
        if offset == 0 {
            return Ok([low, high]);
        }
        let by = [
            self.number(offset as u32),
            self.number((offset >> 32) as u32),
        ];
        let sum = [self.temporary()?, self.temporary()?];
        self.add_wide(sum, [low, high], by);
        Ok(sum)
    }

    pub(super) fn load(&mut self, bytes: u32) -> Result<(), Trap> {
        let address = self.address(&OFFSET)?;
        self.loads(load_of(bytes), Kind::Load, bytes, address)
    }

    pub(super) fn load_buffer(&mut self, bytes: u32) -> Result<(), Trap> {
        let place = self.sources()?;
        self.loads(load_uniform(bytes), Kind::LoadUniform, bytes, place)
    }

    fn place(&self, bytes: u32) -> Result<Into, Trap> {
        let lane = match bytes {
            1 => self.ins.named(&LOAD_LANE_8_BIT),
            2 => self.ins.named(&LOAD_LANE_16_BIT),
            4 => self.ins.named(&LOAD_LANE_32_BIT),
            _ => return Ok(Into::Whole),
        };
        Ok(match (bytes, lane) {
            (4, Some("w0")) => Into::Whole,
            (1 | 2, Some("w0")) => Into::Words(1),
            (_, Some("d0")) => Into::Words(2),
            (1, Some("b0")) => Into::Part(0, 8),
            (1, Some("b1")) => Into::Part(8, 8),
            (1, Some("b2")) => Into::Part(16, 8),
            (1, Some("b3")) => Into::Part(24, 8),
            (_, Some("h0")) => Into::Part(0, 16),
            (_, Some("h1")) => Into::Part(16, 16),
            _ => return Err(self.trap("loads in a way that is not public")),
        })
    }

    fn loads(&mut self, run: OnMemory, kind: Kind, bytes: u32, from: [u16; 2]) -> Result<(), Trap> {
        let into = self.place(bytes)?;
        let words = match into {
            Into::Words(words) => words,
            _ => bytes.div_ceil(4),
        };
        let first = self.staging(words)?;
        let signed = self.ins.value(&UNSIGNED) != Some(1);
        match into {
            Into::Whole => self.moves(run, kind, first, from, bytes),
            Into::Words(words) => {
                self.moves(run, kind, first, from, bytes);
                if signed && bytes < 4 {
                    self.extend_sign(first, bytes);
                }
                match (words, signed) {
                    (1, _) => {}
                    (_, true) => map!(self, first + 1, [first], |x| ((x as i32) >> 31) as u32),
                    (_, false) => {
                        let zero = self.number(0);
                        self.copy(zero, first + 1);
                    }
                }
            }
            Into::Part(at, width) => {
                let loaded = self.temporary()?;
                self.moves(run, kind, loaded, from, bytes);
                if signed && width == 16 && bytes == 1 {
                    self.extend_sign(loaded, 1);
                }
                self.reads(first as u8);
                self.merge(first, loaded, at, (1 << width) - 1);
            }
        }
        Ok(())
    }

    pub(super) fn store(&mut self, bytes: u32) -> Result<(), Trap> {
        let (first, address) = (self.staging(bytes.div_ceil(4))?, self.address(&OFFSET)?);
        self.stores(first, address, bytes);
        Ok(())
    }
}
