// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of the instruction table.

use crate::valhall::field::Field;
use crate::valhall::source::Kind;

/// Instruction's row.
#[derive(Debug)]
pub struct Row {
    /// `FADD.f32`.
    pub name: &'static str,
    /// Bits 56:48.
    pub opcode: u16,
    /// Among those of one opcode.
    pub secondary: Secondary,
    /// Where it executes.
    pub unit: Unit,
    /// What bits 47:40 name.
    pub registers: Registers,
    /// By byte from the lowest.
    pub sources: &'static [Kind],
    /// Numbers.
    pub immediates: &'static [&'static Field],
    /// In the text's order.
    pub modifiers: &'static [&'static Field],
}

impl Row {
    pub(crate) const fn opcode_of(word: u64) -> u16 {
        (word >> 48 & 0x1ff) as u16
    }

    pub(crate) fn fixed(&self) -> u64 {
        u64::from(self.opcode) << 48 | self.secondary.value()
    }

    pub(crate) fn explained(&self) -> u64 {
        let always = 1 << 63 | 0xf << 59 | 3 << 57 | 0x1ff << 48 | 0xff << 40;
        let sources = self.sources.iter().enumerate();
        let sources = sources.fold(0, |all, (byte, kind)| all | kind.mask(byte));
        let groups = self.registers.groups().iter();
        let groups = groups.fold(0, |all, group| all | group.mask());
        let fields = self.immediates.iter().chain(self.modifiers);
        let fields = fields.fold(0, |all, field| all | field.mask());
        always | self.secondary.mask() | sources | groups | fields
    }

    /// Whether results arrive later.
    pub fn is_message(&self) -> bool {
        !matches!(self.unit, Unit::Fma | Unit::Convert | Unit::Special)
    }
}

/// Bits that choose among an opcode's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secondary {
    /// The opcode has one instruction.
    Alone,
    /// Bits 19:16.
    Four(u8),
    /// Bits 20:16.
    Five(u8),
    /// Bits 25:24.
    Two(u8),
    /// Bits 27:24.
    FourHigh(u8),
    /// Bits 25:24 and 32, counted from 24.
    Shift(u16),
    /// Bits 29:27: width in memory.
    Width(u8),
    /// Bits 38:37: descriptor type.
    Kind(u8),
}

impl Secondary {
    /// Lowest bit, mask from there, value.
    const fn parts(self) -> (u8, u64, u64) {
        match self {
            Secondary::Alone => (0, 0, 0),
            Secondary::Four(value) => (16, 0xf, value as u64),
            Secondary::Five(value) => (16, 0x1f, value as u64),
            Secondary::Two(value) => (24, 3, value as u64),
            Secondary::FourHigh(value) => (24, 0xf, value as u64),
            Secondary::Shift(value) => (24, 0x103, value as u64),
            Secondary::Width(value) => (27, 7, value as u64),
            Secondary::Kind(value) => (37, 3, value as u64),
        }
    }

    /// Bits in the word.
    pub const fn mask(self) -> u64 {
        let (at, mask, _) = self.parts();
        mask << at
    }

    /// Their value, in place.
    pub const fn value(self) -> u64 {
        let (at, _, value) = self.parts();
        value << at
    }

    /// Whether a word has this value.
    pub const fn is_in(self, word: u64) -> bool {
        word & self.mask() == self.value()
    }
}

/// Unit of the execution core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Multiply and add.
    Fma,
    /// Conversions, comparisons, integers, branches.
    Convert,
    /// Special functions, shifts, integer products.
    Special,
    /// Memory.
    Memory,
    /// Varyings.
    Varying,
    /// Textures.
    Texture,
    /// Textures whose coordinates are varyings.
    VaryingTexture,
    /// Barriers, tiles, blending.
    Other,
}

/// What bits 47:40 name, and a message's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// Nothing; the bits are c0.
    None,
    /// Destination.
    Dest,
    /// Group that the message writes.
    Loads,
    /// Group that the message reads.
    Stores,
    /// Results of a texture message, counted elsewhere.
    Samples,
    /// Groups: one written, one read and maybe written.
    Swaps,
    /// Groups of a texture message: one written, one read.
    Fetches,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) at: u8,
    /// Lowest of three bits that count it.
    pub(crate) count_at: u8,
    pub(crate) bias: u8,
    pub(crate) written: bool,
}

impl Group {
    /// Above the register lie its two control bits or a modifier.
    fn mask(&self) -> u64 {
        0x3f << self.at | 7 << self.count_at
    }
}

const fn group(at: u8, count_at: u8, bias: u8, written: bool) -> Group {
    Group {
        at,
        count_at,
        bias,
        written,
    }
}

impl Registers {
    pub(crate) fn groups(self) -> &'static [Group] {
        const LOADS: [Group; 1] = [group(40, 33, 0, true)];
        const STORES: [Group; 1] = [group(40, 33, 0, false)];
        const SAMPLES: [Group; 1] = [group(40, 36, 1, true)];
        const BOTH: [Group; 2] = [group(16, 36, 1, true), group(40, 33, 0, false)];
        match self {
            Registers::None | Registers::Dest => &[],
            Registers::Loads => &LOADS,
            Registers::Stores => &STORES,
            Registers::Samples => &SAMPLES,
            Registers::Swaps | Registers::Fetches => &BOTH,
        }
    }

    /// Bits 47:40 without register and modifiers.
    pub(crate) const fn control(self) -> u64 {
        match self {
            Registers::None | Registers::Swaps => 0xc0 << 40,
            Registers::Dest | Registers::Fetches => 0,
            Registers::Loads | Registers::Samples => 0x80 << 40,
            Registers::Stores => 0x40 << 40,
        }
    }

    pub(crate) const fn control_mask(self) -> u64 {
        match self {
            Registers::None => 0xff << 40,
            Registers::Dest => 0,
            _ => 0xc0 << 40,
        }
    }
}
