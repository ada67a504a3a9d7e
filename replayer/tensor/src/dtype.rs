// SPDX-License-Identifier: MIT OR Apache-2.0
//! Element types: names, sizes, and how one element's bits read as a number.

use core::fmt;
use core::str::FromStr;

/// The type of a tensor's elements. All are stored little-endian.
///
/// The discriminants are the codes that a recording stores; they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// IEEE 754 binary32.
    F32 = 1,
    /// IEEE 754 binary16.
    F16 = 2,
    /// IEEE 754 binary64.
    F64 = 3,
    /// Signed 8-bit integer.
    I8 = 4,
    /// Unsigned 8-bit integer.
    U8 = 5,
    /// Signed 16-bit integer.
    I16 = 6,
    /// Unsigned 16-bit integer.
    U16 = 7,
    /// Signed 32-bit integer.
    I32 = 8,
    /// Unsigned 32-bit integer.
    U32 = 9,
    /// Signed 64-bit integer.
    I64 = 10,
    /// Unsigned 64-bit integer.
    U64 = 11,
    /// One byte that is 0 or 1.
    Bool = 12,
}

/// Every element type, in the order of the codes.
const ALL: [DType; 12] = [
    DType::F32,
    DType::F16,
    DType::F64,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::Bool,
];

impl DType {
    /// Every element type.
    pub const fn all() -> &'static [DType] {
        &ALL
    }

    /// Bytes of one element: 1, 2, 4 or 8.
    pub const fn size(self) -> usize {
        match self {
            DType::I8 | DType::U8 | DType::Bool => 1,
            DType::F16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 => 8,
        }
    }

    /// The name users write and read, as NumPy spells it.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "float32",
            DType::F16 => "float16",
            DType::F64 => "float64",
            DType::I8 => "int8",
            DType::U8 => "uint8",
            DType::I16 => "int16",
            DType::U16 => "uint16",
            DType::I32 => "int32",
            DType::U32 => "uint32",
            DType::I64 => "int64",
            DType::U64 => "uint64",
            DType::Bool => "bool",
        }
    }

    /// The letter and size of the type in an .npy header, without the byte order.
    pub(crate) const fn npy_code(self) -> &'static str {
        match self {
            DType::F32 => "f4",
            DType::F16 => "f2",
            DType::F64 => "f8",
            DType::I8 => "i1",
            DType::U8 => "u1",
            DType::I16 => "i2",
            DType::U16 => "u2",
            DType::I32 => "i4",
            DType::U32 => "u4",
            DType::I64 => "i8",
            DType::U64 => "u8",
            DType::Bool => "b1",
        }
    }

    /// The code that a recording stores.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type of a stored code, if there is one.
    pub fn from_code(code: u8) -> Option<DType> {
        ALL.iter().copied().find(|d| d.code() == code)
    }

    /// True for the floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64)
    }

    /// One element's value as a double; 64-bit integers round.
    ///
    /// `bits` holds the element in its low `size()` bytes.
    pub fn value(self, bits: u64) -> f64 {
        match self {
            DType::F32 => f64::from(f32::from_bits(bits as u32)),
            DType::F16 => f64::from(f16_to_f32(bits as u16)),
            DType::F64 => f64::from_bits(bits),
            DType::I8 => f64::from(bits as u8 as i8),
            DType::U8 | DType::Bool => f64::from(bits as u8),
            DType::I16 => f64::from(bits as u16 as i16),
            DType::U16 => f64::from(bits as u16),
            DType::I32 => f64::from(bits as u32 as i32),
            DType::U32 => f64::from(bits as u32),
            DType::I64 => bits as i64 as f64,
            DType::U64 => bits as f64,
        }
    }

    /// The bits of `value` in this type: rounded to nearest, integers saturate.
    pub fn bits(self, value: f64) -> u64 {
        match self {
            DType::F32 => u64::from((value as f32).to_bits()),
            DType::F16 => u64::from(f32_to_f16(value as f32)),
            DType::F64 => value.to_bits(),
            DType::I8 => u64::from(value.round_ties_even() as i8 as u8),
            DType::U8 => u64::from(value.round_ties_even() as u8),
            DType::I16 => u64::from(value.round_ties_even() as i16 as u16),
            DType::U16 => u64::from(value.round_ties_even() as u16),
            DType::I32 => u64::from(value.round_ties_even() as i32 as u32),
            DType::U32 => u64::from(value.round_ties_even() as u32),
            DType::I64 => value.round_ties_even() as i64 as u64,
            DType::U64 => value.round_ties_even() as u64,
            DType::Bool => u64::from(value != 0.0),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = String;

    /// Accepts NumPy's names (`float32`), short names (`f32`) and .npy codes (`<f4`).
    fn from_str(text: &str) -> Result<Self, String> {
        let short = |d: &DType| {
            let letter = if *d == DType::Bool {
                "b"
            } else {
                &d.name()[..1]
            };
            format!("{letter}{}", d.size() * 8)
        };
        let plain = text.trim_start_matches(['<', '|', '=']);
        ALL.iter()
            .find(|d| d.name() == text || short(d) == text)
            .or_else(|| {
                // "u8" and "i8" mean 8 bits to people and 8 bytes to NumPy: the NumPy reading needs '<'.
                ALL.iter()
                    .find(|d| plain.len() < text.len() && d.npy_code() == plain)
            })
            .copied()
            .ok_or_else(|| {
                let names: Vec<&str> = ALL.iter().map(|d| d.name()).collect();
                format!("unknown element type '{text}'; known: {}", names.join(", "))
            })
    }
}

/// Widens IEEE 754 binary16 to binary32 exactly; NaN payloads are kept.
pub fn f16_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let exponent = u32::from(half >> 10) & 0x1f;
    let fraction = u32::from(half & 0x3ff);
    let bits = match (exponent, fraction) {
        (0, 0) => sign,
        (0, _) => {
            // Subnormal: fraction * 2^-24 is exact in binary32.
            let magnitude = fraction as f32 * f32::from_bits(0x3380_0000);
            sign | magnitude.to_bits()
        }
        (31, _) => sign | 0x7f80_0000 | (fraction << 13),
        _ => sign | ((exponent + 112) << 23) | (fraction << 13),
    };
    f32::from_bits(bits)
}

/// Rounds binary32 to binary16, to nearest with ties to even; overflow gives infinity.
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        // Keep the top of the payload and make sure that the NaN stays one.
        return sign | 0x7e00 | ((magnitude >> 13) as u16 & 0x3ff);
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Below the smallest normal: count units of 2^-24 and round them.
        let units = f64::from(f32::from_bits(magnitude)) * 16_777_216.0;
        return sign | units.round_ties_even() as u16;
    }
    let rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_a_round_trip() {
        for half in 0..=u16::MAX {
            let wide = f16_to_f32(half);
            let back = f32_to_f16(wide);
            if wide.is_nan() {
                assert!(f16_to_f32(back).is_nan());
            } else {
                assert_eq!(half, back);
            }
        }
    }

    #[test]
    fn halves_round_to_nearest_even() {
        assert_eq!(f32_to_f16(1.0 + 1.0 / 2048.0), 0x3c00);
        assert_eq!(f32_to_f16(1.0 + 3.0 / 2048.0), 0x3c02);
        assert_eq!(f32_to_f16(65519.0), 0x7bff);
        assert_eq!(f32_to_f16(65520.0), 0x7c00);
        assert_eq!(f32_to_f16(f32::from_bits(0x3300_0000)), 0);
    }

    #[test]
    fn names_parse() {
        assert_eq!("float32".parse(), Ok(DType::F32));
        assert_eq!("f16".parse(), Ok(DType::F16));
        assert_eq!("u8".parse(), Ok(DType::U8));
        assert_eq!("<u8".parse(), Ok(DType::U64));
        assert_eq!("|b1".parse(), Ok(DType::Bool));
        assert!("float31".parse::<DType>().is_err());
        for d in DType::all() {
            assert_eq!(DType::from_code(d.code()), Some(*d));
            assert_eq!(d.name().parse(), Ok(*d));
        }
    }

    #[test]
    fn values_and_bits_agree() {
        for d in DType::all() {
            for v in [0.0, 1.0] {
                assert_eq!(d.value(d.bits(v)), v);
            }
        }
        assert_eq!(DType::I8.value(DType::I8.bits(-5.0)), -5.0);
        assert_eq!(DType::U8.bits(300.0), 255);
    }
}
