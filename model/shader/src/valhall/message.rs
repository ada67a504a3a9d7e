// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores.

use mali_valhall::{
    Field, LOAD_LANE_8_BIT, LOAD_LANE_16_BIT, LOAD_LANE_32_BIT, OFFSET, Op, UNSIGNED,
};

use super::Translator;
use crate::ir::micro::{Kind, OnMemory, Run};
use crate::operations::memory::{load, store_of};
use crate::translate::Trap;

/// What statistics count a message as.
pub(super) fn counted(op: Op) -> Option<mali_isa::Message> {
    match op.row().registers {
        _ if op == Op::Barrier => Some(mali_isa::Message::Barrier),
        _ if is_atomic(op) => Some(mali_isa::Message::Atomic),
        mali_valhall::Registers::Loads => Some(mali_isa::Message::Load),
        mali_valhall::Registers::Stores => Some(mali_isa::Message::Store),
        _ => None,
    }
}

fn is_atomic(op: Op) -> bool {
    matches!(op, Op::AtomI32 | Op::AtomReturnI32 | Op::Atom1ReturnI32)
}

/// What a message costs each lane that executes it by itself, in sixteenths of a clause.
pub(super) fn cost(op: Op) -> u32 {
    if is_atomic(op) { 16 } else { 0 }
}

/// What a load does with its registers.
enum Into {
    /// Fills them as they are.
    Whole,
    /// Extends to 32 bits.
    Word,
    /// Replaces these bits: the lowest, and how many.
    Part(u32, u32),
}

impl Translator<'_> {
    /// First of the registers of the message, which are to be so many.
    fn staging(&self, count: u32) -> Result<u16, Trap> {
        let group = self.ins.staging().next();
        let group = group.filter(|group| u32::from(group.count) == count);
        let group = group.ok_or_else(|| self.trap("has another number of registers"))?;
        Ok(group.first.into())
    }

    /// Rows of the address: a pair of registers and an offset.
    pub(super) fn address(&mut self, offset: &'static Field) -> Result<[u16; 2], Trap> {
        let [low, high] = self.pair(0)?;
        let offset = self.ins.value(offset).unwrap_or(0);
        if offset == 0 {
            return Ok([low, high]);
        }
        let sum = [self.temporary()?, self.temporary()?];
        let [by_low, by_high] = [
            self.number(offset as u32),
            self.number((offset >> 32) as u32),
        ];
        map!(self, sum[0], [low, by_low], |a, b| a.wrapping_add(b));
        map!(
            self,
            sum[1],
            [low, high, by_low, by_high],
            |low, high, by_low, by_high| {
                let carry = u32::from(low.checked_add(by_low).is_none());
                high.wrapping_add(by_high).wrapping_add(carry)
            }
        );
        Ok(sum)
    }

    pub(super) fn load(&mut self, bytes: u32) -> Result<(), Trap> {
        let lane = match bytes {
            1 => self.ins.named(&LOAD_LANE_8_BIT),
            2 => self.ins.named(&LOAD_LANE_16_BIT),
            4 => self.ins.named(&LOAD_LANE_32_BIT),
            _ => Some("identity"),
        };
        let into = match (bytes, lane) {
            (1, Some("b0")) => Into::Part(0, 8),
            (1, Some("b1")) => Into::Part(8, 8),
            (1, Some("b2")) => Into::Part(16, 8),
            (1, Some("b3")) => Into::Part(24, 8),
            (1 | 2, Some("h0")) => Into::Part(0, 16),
            (1 | 2, Some("h1")) => Into::Part(16, 16),
            (1 | 2, Some("w0")) => Into::Word,
            (4, Some("w0")) | (_, Some("identity")) => Into::Whole,
            _ => return Err(self.trap("extends to 64 bits, which is not translated")),
        };
        let (words, address) = (self.staging(bytes.div_ceil(4))?, self.address(&OFFSET)?);
        let run: OnMemory = match bytes {
            1 => load::<1>,
            2 => load::<2>,
            3 => load::<3>,
            4 => load::<4>,
            6 => load::<6>,
            8 => load::<8>,
            12 => load::<12>,
            _ => load::<16>,
        };
        let extends = self.ins.value(&UNSIGNED) != Some(1);
        match into {
            Into::Whole => self.moves(run, Kind::Load, words, address, bytes),
            Into::Word => {
                self.moves(run, Kind::Load, words, address, bytes);
                if extends {
                    let by = self.number(32 - 8 * bytes);
                    map!(self, words, [words, by], |x, by| {
                        ((x << (by & 31)) as i32 >> (by & 31)) as u32
                    });
                }
            }
            Into::Part(at, width) => {
                let loaded = self.temporary()?;
                self.moves(run, Kind::Load, loaded, address, bytes);
                if extends && width == 16 && bytes == 1 {
                    map!(self, loaded, [loaded], |x| x as i8 as u32);
                }
                self.reads(words as u8);
                let mask = (1u32 << width) - 1;
                let (mask, at) = (self.number(mask << at), self.number(at));
                map!(
                    self,
                    words,
                    [words, loaded, mask, at],
                    |old, new, mask, at| { old & !mask | (new << (at & 31)) & mask }
                );
            }
        }
        Ok(())
    }

    pub(super) fn store(&mut self, bytes: u32) -> Result<(), Trap> {
        let words = bytes.div_ceil(4);
        let (first, address) = (self.staging(words)?, self.address(&OFFSET)?);
        for register in 0..words as u8 {
            self.reads(first as u8 + register);
        }
        self.moves(store_of(bytes), Kind::Store, first, address, bytes);
        Ok(())
    }

    /// Emits a load or a store.
    fn moves(&mut self, run: OnMemory, kind: Kind, d: u16, [a, b]: [u16; 2], bytes: u32) {
        let sources = [a, b, bytes as u16, 0];
        self.emit(Run::Message(run), d, sources, bytes.div_ceil(4), 2, kind);
    }
}
