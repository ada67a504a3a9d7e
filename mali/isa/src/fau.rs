// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tuple's 64-bit value.

/// What of a constant is relative to the clause's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Relative {
    /// Plain number.
    #[default]
    None,
    /// Clause address + value, sign-extended from 60 bits.
    Whole,
    /// The high word is the low word of clause address + offset (28 bits, signed).
    High,
    /// Both words are such 28-bit offsets.
    Both,
}

impl Relative {
    /// Value that a shader sees.
    pub const fn resolve(self, value: u64, clause_address: u64) -> u64 {
        const fn word(offset: u32, address: u64) -> u64 {
            let offset = ((offset << 4) as i32) >> 4;
            (address as u32).wrapping_add(offset as u32) as u64
        }
        match self {
            Relative::None => value,
            Relative::Whole => clause_address.wrapping_add((((value << 4) as i64) >> 4) as u64),
            Relative::High => {
                (value & 0xffff_ffff) | (word((value >> 32) as u32, clause_address) << 32)
            }
            Relative::Both => {
                word(value as u32, clause_address)
                    | (word((value >> 32) as u32, clause_address) << 32)
            }
        }
    }
}

/// An FAU index (fast access uniform). Source selectors 4 and 5 read its low and high word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Fau {
    /// 0
    #[default]
    Zero,
    /// Lane in its warp.
    LaneId,
    /// Warp number.
    WarpId,
    /// Core number.
    CoreId,
    /// Width and height.
    FramebufferSize,
    /// Parameter of the alpha test.
    AtestDatum,
    /// Address of the sample positions.
    SamplePositions,
    /// Blend descriptor of a render target (0-7).
    Blend(u8),
    /// Push uniform slot (0-127, 64 bits each: words 2n and 2n + 1).
    Uniform(u8),
    /// Embedded in the clause.
    Constant {
        /// With the tuple's low four bits.
        value: u64,
        /// Parts relative to the clause's address.
        relative: Relative,
        /// Number in the clause (0-5).
        index: u8,
    },
    /// A constant (0-5) that the clause lacks: readers do not decode.
    Missing(u8),
    /// Reserved index: readers do not decode.
    Reserved(u8),
}
