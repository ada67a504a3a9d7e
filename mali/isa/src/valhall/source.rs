// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of instructions.

use crate::valhall::field::ones;
use crate::valhall::values::{self, Values};

/// `I` and `F`: integers and floats with modifiers; then the width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Kind {
    /// No source.
    GAP,
    /// 8 bits as they are.
    R8,
    /// 16 bits as they are.
    R16,
    /// 32 bits as they are.
    R32,
    /// Pair of registers.
    R64,
    /// 8 bits, maybe complemented.
    N8,
    /// 16 bits, maybe complemented.
    N16,
    /// 32 bits, maybe complemented.
    N32,
    /// Pair, maybe complemented.
    N64,
    /// 16 bits, a float with sign modifiers.
    F16,
    /// 32 bits, a float with sign modifiers.
    F32,
    /// `F16` with a choice of halves.
    F16S,
    /// `F32`, or a widened half.
    F32S,
    /// Half, a float with sign modifiers.
    F16L,
    /// 16 bits with a choice of halves.
    I16S,
    /// 32 bits, or a widened half.
    I32S,
    /// Four bytes in some order.
    I8W,
    /// Two halves, or two widened bytes.
    I16W,
    /// 32 bits, or a widened part.
    I32W,
    /// 64 bits, or a widened part.
    I64W,
    /// Byte that counts a shift or names a lane.
    LANES,
    /// Two bytes.
    HALVES,
    /// What a branch tests.
    TRUTH,
    /// Converted byte.
    BYTE,
    /// Byte of a new vector.
    PART,
}

/// Lowest bit, width, meaning.
pub(crate) type Select = (u8, u8, &'static Values);

impl Kind {
    /// Whether it takes a pair.
    pub const fn is_wide(self) -> bool {
        matches!(self, Kind::R64 | Kind::N64 | Kind::I64W)
    }

    pub(crate) fn signs(self, byte: usize) -> Option<(u8, u8)> {
        let signed = matches!(
            self,
            Kind::F16 | Kind::F32 | Kind::F16S | Kind::F32S | Kind::F16L
        );
        let places = [(38, 39), (36, 37), (34, 35)];
        places.get(byte).copied().filter(|_| signed)
    }

    pub(crate) fn complement(self) -> Option<u8> {
        matches!(self, Kind::N8 | Kind::N16 | Kind::N32 | Kind::N64).then_some(35)
    }

    pub(crate) fn select(self, byte: usize) -> Option<Select> {
        let narrow = *[28, 26, 24].get(byte)?;
        let wide = if byte == 0 { 36 } else { 26 };
        Some(match self {
            Kind::F16S | Kind::I16S => (narrow, 2, &values::SWIZZLES_16_BIT),
            Kind::F32S | Kind::I32S => (narrow, 2, &values::WIDEN),
            Kind::F16L => (narrow, 2, &values::LANE_16_BIT),
            Kind::BYTE => (narrow, 2, &values::LANE_8_BIT),
            Kind::I8W => (wide, 4, &values::SWIZZLES_8_BIT),
            Kind::I16W => (wide, 4, &values::SWIZZLES_16_BIT),
            Kind::I32W => (wide, 4, &values::SWIZZLES_32_BIT),
            Kind::I64W => (wide, 4, &values::SWIZZLES_64_BIT),
            Kind::LANES => (wide, 4, &values::LANES_8_BIT),
            Kind::HALVES => (wide, 4, &values::HALF_SWIZZLES_8_BIT),
            Kind::TRUTH => (37, 3, &values::COMBINE),
            Kind::PART => (if byte == 0 { 38 } else { 36 }, 2, &values::LANE_8_BIT),
            _ => return None,
        })
    }

    pub(crate) fn mask(self, byte: usize) -> u64 {
        if self == Kind::GAP {
            return 0;
        }
        let signs = self.signs(byte);
        let signs = signs.map_or(0, |(negate, absolute)| 1 << negate | 1 << absolute);
        let complement = self.complement().map_or(0, |at| 1 << at);
        let select = self.select(byte);
        let select = select.map_or(0, |(at, bits, _)| ones(bits) << at);
        0xff << (8 * byte) | signs | complement | select
    }

    pub(crate) fn read(self, byte: usize, word: u64) -> Option<Operand> {
        if self == Kind::GAP {
            return None;
        }
        let bit = |at: u8| word >> at & 1 == 1;
        let signs = self.signs(byte);
        let select = self.select(byte);
        Some(Operand {
            kind: self,
            code: Code::read((word >> (8 * byte)) as u8, (word >> 57 & 3) as u8),
            negate: signs.is_some_and(|(at, _)| bit(at)),
            absolute: signs.is_some_and(|(_, at)| bit(at)),
            complement: self.complement().is_some_and(bit),
            select: select.map(|(at, bits, values)| ((word >> at & ones(bits)) as u8, values)),
        })
    }
}

/// Instruction's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// How it is read.
    pub kind: Kind,
    /// Where it comes from.
    pub code: Code,
    /// After the absolute value.
    pub negate: bool,
    /// Drops the sign.
    pub absolute: bool,
    /// Changes all bits.
    pub complement: bool,
    /// Value and meaning of its values.
    pub select: Option<(u8, &'static Values)>,
}

impl Operand {
    /// `None` if absent or reserved.
    pub fn selected(&self) -> Option<&'static str> {
        let (value, values) = self.select?;
        values.name(value.into())
    }
}

/// Where a source comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Register.
    Register {
        /// Below 64.
        index: u8,
        /// Hint: nothing reads it again.
        last: bool,
    },
    /// 32-bit word.
    Uniform(u8),
    /// Entry of [`CONSTANTS`], below 32.
    Constant(u8),
    /// Value from the hardware.
    Special(Special),
}

impl Code {
    /// Source byte, with the instruction's page.
    pub const fn read(code: u8, page: u8) -> Code {
        let value = code & 63;
        match code >> 6 {
            2 => Code::Uniform(page << 6 | value),
            3 if value < 32 => Code::Constant(value),
            3 => Code::Special(Special {
                page,
                entry: (value - 32) >> 1,
                word: value & 1,
            }),
            last => Code::Register {
                index: value,
                last: last == 1,
            },
        }
    }

    /// Constant, if it is one.
    pub fn constant(self) -> Option<u32> {
        match self {
            Code::Constant(index) => CONSTANTS.get(usize::from(index)).copied(),
            _ => None,
        }
    }
}

/// 64-bit value from the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    /// Below 4.
    pub page: u8,
    /// Below 16.
    pub entry: u8,
    /// 0 for the low, 1 for the high word.
    pub word: u8,
}

impl Special {
    /// `None` if reserved.
    pub fn name(self) -> Option<&'static str> {
        let (page, entry) = (self.page, self.entry);
        let found = SPECIALS.iter().find(|it| it.0 == page && it.1 == entry);
        found.map(|it| it.2)
    }
}

pub(crate) const SPECIALS: [(u8, u8, &str); 18] = [
    (0, 2, "warp_id"),
    (0, 4, "framebuffer_size"),
    (0, 5, "atest_datum"),
    (0, 6, "sample"),
    (0, 8, "blend_descriptor_0"),
    (0, 9, "blend_descriptor_1"),
    (0, 10, "blend_descriptor_2"),
    (0, 11, "blend_descriptor_3"),
    (0, 12, "blend_descriptor_4"),
    (0, 13, "blend_descriptor_5"),
    (0, 14, "blend_descriptor_6"),
    (0, 15, "blend_descriptor_7"),
    (1, 1, "thread_local_pointer"),
    (1, 3, "workgroup_local_pointer"),
    (1, 7, "resource_table_pointer"),
    (3, 1, "lane_id"),
    (3, 3, "core_id"),
    (3, 15, "program_counter"),
];

/// Constants that a source can name.
#[rustfmt::skip]
pub const CONSTANTS: [u32; 32] = [
    0x0000_0000, 0xffff_ffff, 0x7fff_ffff, 0xfafc_fdfe, 0x0100_0000, 0x8000_2000, 0x7060_5030, 0xc0b0_a090,
    0x0302_0100, 0x0706_0504, 0x0b0a_0908, 0x0f0e_0d0c, 0x1312_1110, 0x1716_1514, 0x1b1a_1918, 0x1f1e_1d1c,
    0x3f80_0000, 0x3dcc_cccd, 0x3ea2_f983, 0x3f31_7218, 0x4049_0fdb, 0x0000_0000, 0x477f_ff00, 0x5c00_5bf8,
    0x2e66_0000, 0x3400_0000, 0x3800_0000, 0x3c00_0000, 0x4000_0000, 0x4400_0000, 0x4800_0000, 0x4248_0000,
];
