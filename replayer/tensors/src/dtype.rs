// SPDX-License-Identifier: MIT OR Apache-2.0
//! Element types: NumPy's names, and numbers from bits.

pub use gpureplay_format::ElementType;

/// Names and values of an element type.
pub trait Element: Sized {
    /// 1, 2, 4 or 8.
    fn bytes(self) -> usize;
    /// Floating-point.
    fn is_float(&self) -> bool;
    /// In an .npy header, without byte order.
    fn npy_code(self) -> &'static str;
    /// Such as `float32`.
    fn numpy_name(self) -> String;
    /// Takes `f32`, `float32` or `<f4`.
    ///
    /// # Errors
    /// A message that lists the known names.
    fn from_name(name: &str) -> Result<Self, String>;
    /// 64-bit integers round. `bits` holds the element in its low bytes.
    fn value(self, bits: u64) -> f64;
    /// Rounds to nearest even; integers saturate.
    fn bits(self, value: f64) -> u64;
}

impl Element for ElementType {
    fn bytes(self) -> usize {
        self.size() as usize
    }

    fn is_float(&self) -> bool {
        matches!(self, ElementType::F16 | ElementType::F32 | ElementType::F64)
    }

    fn npy_code(self) -> &'static str {
        match self {
            ElementType::F32 => "f4",
            ElementType::F16 => "f2",
            ElementType::F64 => "f8",
            ElementType::I8 => "i1",
            ElementType::U8 => "u1",
            ElementType::I16 => "i2",
            ElementType::U16 => "u2",
            ElementType::I32 => "i4",
            ElementType::U32 => "u4",
            ElementType::I64 => "i8",
            ElementType::U64 => "u8",
            ElementType::Bool => "b1",
        }
    }

    fn numpy_name(self) -> String {
        let bits = self.size() * 8;
        match self {
            ElementType::Bool => "bool".to_owned(),
            _ if self.is_float() => format!("float{bits}"),
            _ if self.npy_code().starts_with('u') => format!("uint{bits}"),
            _ => format!("int{bits}"),
        }
    }

    fn from_name(name: &str) -> Result<Self, String> {
        // "u8" is 8 bits to people and 8 bytes to NumPy, which needs its byte order.
        let code = name.strip_prefix(['<', '|', '=']);
        ElementType::ALL
            .iter()
            .find(|d| d.name() == name || d.numpy_name() == name || Some(d.npy_code()) == code)
            .copied()
            .ok_or_else(|| {
                let names: Vec<&str> = ElementType::ALL.iter().map(|d| d.name()).collect();
                format!(
                    "unknown element type '{name}'; expected one of {}",
                    names.join(" ")
                )
            })
    }

    fn value(self, bits: u64) -> f64 {
        match self {
            ElementType::F32 => f64::from(f32::from_bits(bits as u32)),
            ElementType::F16 => f64::from(f16_to_f32(bits as u16)),
            ElementType::F64 => f64::from_bits(bits),
            ElementType::I8 => f64::from(bits as u8 as i8),
            ElementType::U8 | ElementType::Bool => f64::from(bits as u8),
            ElementType::I16 => f64::from(bits as u16 as i16),
            ElementType::U16 => f64::from(bits as u16),
            ElementType::I32 => f64::from(bits as u32 as i32),
            ElementType::U32 => f64::from(bits as u32),
            ElementType::I64 => bits as i64 as f64,
            ElementType::U64 => bits as f64,
        }
    }

    fn bits(self, value: f64) -> u64 {
        match self {
            ElementType::F32 => u64::from((value as f32).to_bits()),
            ElementType::F16 => u64::from(f32_to_f16(value as f32)),
            ElementType::F64 => value.to_bits(),
            ElementType::I8 => u64::from(value.round_ties_even() as i8 as u8),
            ElementType::U8 => u64::from(value.round_ties_even() as u8),
            ElementType::I16 => u64::from(value.round_ties_even() as i16 as u16),
            ElementType::U16 => u64::from(value.round_ties_even() as u16),
            ElementType::I32 => u64::from(value.round_ties_even() as i32 as u32),
            ElementType::U32 => u64::from(value.round_ties_even() as u32),
            ElementType::I64 => value.round_ties_even() as i64 as u64,
            ElementType::U64 => value.round_ties_even() as u64,
            ElementType::Bool => u64::from(value != 0.0),
        }
    }
}

/// Widens binary16 exactly; NaN payloads are kept.
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

/// Rounds to nearest with ties to even; overflow gives infinity.
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        // Keep the top of the payload; a NaN stays one.
        return sign | 0x7e00 | ((magnitude >> 13) as u16 & 0x3ff);
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Subnormal: round to units of 2^-24.
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
        assert_eq!(ElementType::from_name("float32"), Ok(ElementType::F32));
        assert_eq!(ElementType::from_name("f16"), Ok(ElementType::F16));
        assert_eq!(ElementType::from_name("u8"), Ok(ElementType::U8));
        assert_eq!(ElementType::from_name("uint8"), Ok(ElementType::U8));
        assert_eq!(ElementType::from_name("<u8"), Ok(ElementType::U64));
        assert_eq!(ElementType::from_name("|b1"), Ok(ElementType::Bool));
        assert!(ElementType::from_name("float31").is_err());
    }

    #[test]
    fn values_and_bits_agree() {
        for d in ElementType::ALL {
            for v in [0.0, 1.0] {
                assert_eq!(d.value(d.bits(v)), v);
            }
        }
        assert_eq!(ElementType::I8.value(ElementType::I8.bits(-5.0)), -5.0);
        assert_eq!(ElementType::U8.bits(300.0), 255);
    }
}
