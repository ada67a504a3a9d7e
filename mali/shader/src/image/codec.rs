// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texels, from bits to numbers and back.

use gpureplay_shader::alu::rounding::to_f16;
use gpureplay_shader::alu::{Round, half};
use mali_facts::texel::{Channel, Encoding, Packing, Texel, TexelFormat};

/// Texels from and to memory.
pub trait Texels {
    /// Missing bytes are zero.
    fn load(&self, bytes: &[u8]) -> Texel;

    /// `bytes` holds at least [`TexelFormat::bytes`]; returns how many.
    fn store(&self, texel: Texel, bytes: &mut [u8; 16]) -> usize;
}

impl Texels for TexelFormat {
    fn load(&self, bytes: &[u8]) -> Texel {
        let components = unpack(self, bytes);
        let kind = self.kind();
        self.order.map(|channel| channel.pick(components, kind))
    }

    fn store(&self, texel: Texel, bytes: &mut [u8; 16]) -> usize {
        let mut components = [0, 0, 0, 0];
        for (i, channel) in self.order.iter().enumerate().rev() {
            if let Channel::Component(c) = channel {
                components[*c as usize & 3] = texel[i];
            }
        }
        pack(self, components, bytes);
        self.bytes as usize
    }
}

fn unpack(format: &TexelFormat, bytes: &[u8]) -> [u32; 4] {
    let mut raw = [0u8; 16];
    for (to, from) in raw.iter_mut().zip(bytes) {
        *to = *from;
    }
    let all = u128::from_le_bytes(raw);
    match format.packing {
        Packing::Fields(widths) => {
            let absent = [0, 0, 0, format.kind().one()];
            let mut out = absent;
            let mut at = 0u32;
            for (i, &width) in widths.iter().enumerate().filter(|(_, w)| **w > 0) {
                let bits = (all >> at) as u32 & mask(width);
                let word = decode(bits, width, format.encoding);
                out[i] = if format.srgb && i < 3 {
                    from_srgb(word)
                } else {
                    word
                };
                at += width as u32;
            }
            out
        }
        Packing::SharedExponent => shared(all as u32, all as u32 >> 27),
        Packing::ExponentFirst => shared(all as u32 >> 5, all as u32 & 31),
    }
}

fn pack(format: &TexelFormat, components: [u32; 4], bytes: &mut [u8; 16]) {
    let all = match format.packing {
        Packing::Fields(widths) => {
            let mut all = 0u128;
            let mut at = 0u32;
            for (i, &width) in widths.iter().enumerate().filter(|(_, w)| **w > 0) {
                let word = match format.encoding {
                    Encoding::Position if i < 2 => snap(components[i]),
                    _ if format.srgb && i < 3 => to_srgb(components[i]),
                    _ => components[i],
                };
                all |= (encode(word, width, format.encoding) as u128) << at;
                at += width as u32;
            }
            all
        }
        Packing::SharedExponent => {
            let (mantissas, exponent) = share(components);
            (mantissas | exponent << 27) as u128
        }
        Packing::ExponentFirst => {
            let (mantissas, exponent) = share(components);
            (mantissas << 5 | exponent) as u128
        }
    };
    let raw = all.to_le_bytes();
    let count = format.bytes as usize;
    bytes[..count].copy_from_slice(&raw[..count]);
}

const fn mask(width: u8) -> u32 {
    if width >= 32 {
        u32::MAX
    } else {
        (1 << width) - 1
    }
}

fn decode(bits: u32, width: u8, encoding: Encoding) -> u32 {
    let left = 32 - width as u32;
    let signed = ((bits << left) as i32) >> left;
    match encoding {
        Encoding::Uint => bits,
        Encoding::Sint => signed as u32,
        Encoding::Unorm => ((bits as f64 / mask(width) as f64) as f32).to_bits(),
        Encoding::Snorm => {
            let most = mask(width) >> 1;
            ((signed as f64 / most as f64).max(-1.0) as f32).to_bits()
        }
        Encoding::Position => bits,
        Encoding::Float => match width {
            32 => bits,
            16 => half::to_single(bits as u16),
            // Five bits of exponent: a half without sign and lowest mantissa bits.
            _ => half::to_single((bits << (15 - width as u32)) as u16),
        },
    }
}

/// What does not fit saturates.
fn encode(word: u32, width: u8, encoding: Encoding) -> u32 {
    let number = f32::from_bits(word) as f64;
    let number = if number.is_nan() { 0.0 } else { number };
    let most = mask(width);
    match encoding {
        Encoding::Uint => word.min(most),
        Encoding::Sint => {
            let high = (most >> 1) as i32;
            (word as i32).clamp(-high - 1, high) as u32 & most
        }
        Encoding::Unorm => (number.clamp(0.0, 1.0) * most as f64).round_ties_even() as u32,
        Encoding::Snorm => {
            let scaled = number.clamp(-1.0, 1.0) * (most >> 1) as f64;
            scaled.round_ties_even() as i64 as u32 & most
        }
        Encoding::Position => word,
        Encoding::Float => match width {
            32 => word,
            16 => half::from_single(word) as u32,
            _ => small_float(f32::from_bits(word), width),
        },
    }
}

/// `width - 5` bits of mantissa, no sign, to nearest even.
fn small_float(x: f32, width: u8) -> u32 {
    if x.is_nan() {
        return mask(width);
    }
    if x <= 0.0 {
        return 0;
    }
    let infinity = 31 << (width - 5);
    if x == f32::INFINITY {
        return infinity;
    }
    // The first step rounds to odd.
    let shift = 15 - width as u32;
    let odd = to_f16(x as f64, Round::Odd) as u32;
    let low = odd & ((1 << shift) - 1);
    let kept = odd >> shift;
    let tie = 1 << (shift - 1);
    let rounded = kept + (low > tie || (low == tie && kept & 1 == 1)) as u32;
    // The largest finite number stands for all above.
    rounded.min(infinity - 1)
}

/// Three 9-bit mantissas with a common exponent.
fn shared(mantissas: u32, exponent: u32) -> [u32; 4] {
    let scale = f64::powi(2.0, exponent as i32 - 24);
    let one = |i: u32| (((mantissas >> (9 * i) & 0x1ff) as f64 * scale) as f32).to_bits();
    [one(0), one(1), one(2), 0x3f80_0000]
}

fn share(components: [u32; 4]) -> (u32, u32) {
    const MOST: f64 = 65408.0;
    let c: [f64; 3] = core::array::from_fn(|i| {
        let v = f32::from_bits(components[i]) as f64;
        if v > 0.0 { v.min(MOST) } else { 0.0 }
    });
    let largest = c[0].max(c[1]).max(c[2]);
    let mut exponent = 0i32;
    while exponent < 31 && (largest / f64::powi(2.0, exponent - 24) + 0.5).floor() > 511.0 {
        exponent += 1;
    }
    let scale = f64::powi(2.0, exponent - 24);
    let one = |v: f64| ((v / scale + 0.5).floor() as u32).min(511);
    (
        one(c[0]) | one(c[1]) << 9 | one(c[2]) << 18,
        exponent as u32,
    )
}

fn snap(word: u32) -> u32 {
    let v = f32::from_bits(word) as f64;
    if v.is_finite() {
        (((v * 256.0).round_ties_even() / 256.0) as f32).to_bits()
    } else {
        word
    }
}

fn from_srgb(word: u32) -> u32 {
    let v = f32::from_bits(word) as f64;
    let linear = if v <= 0.04045 {
        v / 12.92
    } else {
        ((v + 0.055) / 1.055).powf(2.4)
    };
    (linear as f32).to_bits()
}

fn to_srgb(word: u32) -> u32 {
    let v = (f32::from_bits(word) as f64).clamp(0.0, 1.0);
    let encoded = if v <= 0.0031308 {
        v * 12.92
    } else {
        1.055 * v.powf(1.0 / 2.4) - 0.055
    };
    (encoded as f32).to_bits()
}

#[cfg(test)]
mod tests {
    use mali_facts::PixelFormat;

    use super::*;

    fn f(number: u32) -> TexelFormat {
        TexelFormat::parse(PixelFormat(number << 12), false).unwrap()
    }

    fn floats(f: &TexelFormat, bytes: &[u8]) -> [f32; 4] {
        f.load(bytes).map(f32::from_bits)
    }

    #[test]
    fn every_value_of_small_formats_survives() {
        for number in [163, 99, 131, 195, 164, 100, 132, 196, 199, 75, 93] {
            let format = f(number);
            for v in 0..=u16::MAX {
                let bytes = v.to_le_bytes();
                if format.bytes == 1 && v > 255 {
                    break;
                }
                let mut out = [0; 16];
                let texel = format.load(&bytes[..format.bytes as usize]);
                let n = format.store(texel, &mut out);
                let nan = number == 199 && half::is_nan(v);
                // The least signed fraction is another -1.
                let least = matches!(number, 99 | 100) && (out[..n] != bytes[..n]);
                if least {
                    assert_eq!(f32::from_bits(texel[0]), -1.0);
                } else if !nan {
                    assert_eq!(out[..n], bytes[..n], "{number} {v:#x}");
                }
            }
        }
        for number in [64, 65, 67, 71, 73, 69, 89, 91, 187, 123, 219] {
            let format = f(number);
            let mut s = 1u32;
            for _ in 0..20_000 {
                s = s.wrapping_mul(1664525).wrapping_add(1013904223);
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&(s ^ s >> 15).to_le_bytes());
                let texel = format.load(&bytes);
                let mut first = [0; 16];
                format.store(texel, &mut first);
                let again = format.load(&first);
                let same = texel
                    .iter()
                    .zip(again)
                    .all(|(a, b)| *a == b || f32::from_bits(*a).is_nan());
                assert!(same, "{number} {bytes:x?} {first:x?}");
            }
        }
    }

    #[test]
    fn normalised_numbers() {
        assert_eq!(
            floats(&f(187), &[0, 255, 51, 128]),
            [0.0, 1.0, 0.2, 128.0 / 255.0]
        );
        assert_eq!(floats(&f(123), &[127, 128, 129, 0]), [1.0, -1.0, -1.0, 0.0]);
        assert_eq!(floats(&f(64), &[0x1f, 0xf8]), [1.0, 0.0, 1.0, 1.0]);
        assert_eq!(
            floats(&f(67), &0xc000_03ffu32.to_le_bytes()),
            [1.0, 0.0, 0.0, 1.0]
        );
        let mut out = [0; 16];
        let t = [2.0f32, -1.0, 0.5, f32::NAN].map(f32::to_bits);
        f(187).store(t, &mut out);
        assert_eq!(out[..4], [255, 0, 128, 0]);
        f(123).store(t, &mut out);
        assert_eq!(out[..4], [127, 0x81, 64, 0]);
    }

    #[test]
    fn integers_saturate() {
        let mut out = [0; 16];
        f(155).store([300, 5, u32::MAX, 0], &mut out);
        assert_eq!(out[..4], [255, 5, 255, 0]);
        f(219).store([300, -300i32 as u32, u32::MAX, 0], &mut out);
        assert_eq!(out[..4], [127, 0x80, 0xff, 0]);
        f(157).store([1, 2, 3, u32::MAX], &mut out);
        assert_eq!(out[12..], [255; 4]);
        assert_eq!(
            f(220).load(&[0xff, 0xff, 1, 0, 0, 0x80, 0, 0]),
            [u32::MAX, 1, 0xffff_8000, 0]
        );
    }

    #[test]
    fn floats_of_all_sizes() {
        let mut out = [0; 16];
        let t = [1.5f32, -2.0, 1e-3, 65504.0].map(f32::to_bits);
        assert_eq!(f(191).store(t, &mut out), 16);
        assert_eq!(f(191).load(&out), t);
        assert_eq!(f(223).store(t, &mut out), 8);
        assert_eq!(floats(&f(223), &out)[..2], [1.5, -2.0]);
        f(89).store(t, &mut out);
        let back = floats(&f(89), &out);
        assert_eq!((back[0], back[1]), (1.5, 0.0));
        assert!((back[2] - 1e-3).abs() < 1e-5);
        f(91).store([1.0f32, 0.5, 1e9, 0.0].map(f32::to_bits), &mut out);
        assert_eq!(floats(&f(91), &out), [0.0, 0.0, 65408.0, 1.0]);
        f(91).store([1.0f32, 0.5, 0.25, 0.0].map(f32::to_bits), &mut out);
        assert_eq!(floats(&f(91), &out), [1.0, 0.5, 0.25, 1.0]);
    }

    #[test]
    fn srgb_and_missing_components() {
        let s = TexelFormat::parse(PixelFormat(1 << 20 | 187 << 12), false).unwrap();
        let v = floats(&s, &[188, 0, 255, 128]);
        assert!((v[0] - 0.5028865).abs() < 1e-6 && v[3] == 128.0 / 255.0);
        let mut out = [0; 16];
        s.store(v.map(f32::to_bits), &mut out);
        assert_eq!(out[..4], [188, 0, 255, 128]);
        assert_eq!(floats(&f(163), &[255]), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(f(139).load(&[3, 4]), [3, 4, 0, 1]);
    }

    #[test]
    fn orders_and_swizzles() {
        let bytes = [10, 20, 30, 40];
        let v7 = |order: u32| TexelFormat::parse(PixelFormat(155 << 12 | order), false).unwrap();
        let load = |order| v7(order).load(&bytes);
        assert_eq!(load(0), [10, 20, 30, 40]);
        assert_eq!(load(4), [30, 20, 10, 40]);
        assert_eq!(load(8), [20, 30, 40, 10]);
        assert_eq!(load(12), [40, 30, 20, 10]);
        assert_eq!(load(16), [10, 20, 30, 1]);
        assert_eq!(load(20), [30, 20, 10, 1]);
        assert_eq!(load(226), [10; 4]);
        let v6 = TexelFormat::parse(PixelFormat(155 << 12 | 0o5012), true).unwrap();
        assert_eq!(v6.load(&bytes), [30, 20, 10, 1]);
        for order in [0, 2, 4, 8, 10, 12, 242] {
            let mut out = [0; 16];
            let f = v7(order);
            assert_eq!(f.store(f.load(&bytes), &mut out), 4);
            assert_eq!(out[..4], bytes);
        }
    }
}
