// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texels in registers: words or packed halves.

use gpureplay_shader::alu::half;
use mali_facts::texel::{Kind, Texel};

/// The discriminant is the encoding in conversion descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterFormat {
    /// Half precision, two to a register.
    F16 = 0,
    /// Single precision.
    F32 = 1,
    /// 32 bits, signed.
    I32 = 2,
    /// 32 bits, unsigned.
    U32 = 3,
    /// 16 bits, signed, two to a register.
    I16 = 4,
    /// 16 bits, unsigned, two to a register.
    U16 = 5,
}

impl RegisterFormat {
    /// Decodes a conversion descriptor's field.
    pub const fn from_encoding(value: u32) -> Option<RegisterFormat> {
        Some(match value {
            0 => RegisterFormat::F16,
            1 => RegisterFormat::F32,
            2 => RegisterFormat::I32,
            3 => RegisterFormat::U32,
            4 => RegisterFormat::I16,
            5 => RegisterFormat::U16,
            _ => return None,
        })
    }

    /// Register format of 32 bits, for `auto`.
    pub const fn natural(kind: Kind) -> RegisterFormat {
        match kind {
            Kind::Float => RegisterFormat::F32,
            Kind::Signed => RegisterFormat::I32,
            Kind::Unsigned => RegisterFormat::U32,
        }
    }

    /// Components per register.
    #[inline]
    pub const fn per_register(self) -> usize {
        match self {
            RegisterFormat::F32 | RegisterFormat::I32 | RegisterFormat::U32 => 1,
            RegisterFormat::F16 | RegisterFormat::I16 | RegisterFormat::U16 => 2,
        }
    }

    /// Registers for 1 to 4 components.
    #[inline]
    pub const fn registers(self, components: usize) -> usize {
        components.div_ceil(self.per_register())
    }

    /// Words for a texel.
    pub fn pack(self, texel: Texel, kind: Kind) -> [u32; 4] {
        let pair = |f: &dyn Fn(u32) -> u16| {
            let h = texel.map(f);
            let word = |i: usize| h[i] as u32 | (h[i + 1] as u32) << 16;
            [word(0), word(2), 0, 0]
        };
        match self {
            RegisterFormat::F32 | RegisterFormat::I32 | RegisterFormat::U32 => texel,
            RegisterFormat::F16 if kind == Kind::Float => pair(&half::from_single),
            RegisterFormat::I16 if kind == Kind::Signed => {
                pair(&|v| (v as i32).clamp(-0x8000, 0x7fff) as u16)
            }
            RegisterFormat::U16 if kind == Kind::Unsigned => pair(&|v| v.min(0xffff) as u16),
            _ => pair(&|v| v as u16),
        }
    }

    /// A texel from words.
    pub fn unpack(self, words: [u32; 4]) -> Texel {
        let part = |i: usize| words[i / 2] >> (16 * (i as u32 & 1));
        match self {
            RegisterFormat::F32 | RegisterFormat::I32 | RegisterFormat::U32 => words,
            RegisterFormat::F16 => core::array::from_fn(|i| half::to_single(part(i) as u16)),
            RegisterFormat::I16 => core::array::from_fn(|i| part(i) as i16 as u32),
            RegisterFormat::U16 => core::array::from_fn(|i| part(i) & 0xffff),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_packed_in_pairs() {
        let t = [1.0f32, 2.0, -0.5, 0.25].map(f32::to_bits);
        let w = RegisterFormat::F16.pack(t, Kind::Float);
        assert_eq!(w, [0x4000_3c00, 0x3400_b800, 0, 0]);
        assert_eq!(RegisterFormat::F16.unpack(w), t);
        let i = [1, -2i32 as u32, 70000, -70000i32 as u32];
        let w = RegisterFormat::I16.pack(i, Kind::Signed);
        assert_eq!(
            RegisterFormat::I16.unpack(w),
            [1, -2i32 as u32, 32767, -32768i32 as u32]
        );
        assert_eq!(
            RegisterFormat::U16.unpack([0xffff_0001, 2, 0, 0]),
            [1, 0xffff, 2, 0]
        );
        assert_eq!(RegisterFormat::F32.pack(t, Kind::Float), t);
        assert_eq!(RegisterFormat::F16.registers(3), 2);
        assert_eq!(RegisterFormat::U32.registers(3), 3);
        for v in 0..8 {
            let f = RegisterFormat::from_encoding(v);
            assert!(f.is_none_or(|f| f as u32 == v));
        }
    }
}
