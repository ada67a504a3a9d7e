// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and element types of tensors, from kernel arguments.

use gpureplay_tensors::{Element, ElementType};

use gpureplay_trace::note::content_hash;

use super::events::{Given, Launched};

/// Bytes of a kernel's and of an argument's name. A tensor name has at most 255, and gets a number if it is not
/// unique.
const LONGEST: usize = 110;
/// A hash's digits and separator.
const HASH: usize = 17;

fn plain(text: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let all = text.chars().map(|c| if kept(c) { c } else { '_' });
    let mut plain: String = all.collect();
    if plain.len() > LONGEST {
        plain.truncate(LONGEST - HASH);
        plain += &format!("-{:016x}", content_hash(text.as_bytes()));
    }
    plain
}

pub(super) fn name(launch: &Launched, given: &Given) -> String {
    let argument = match given.name.as_str() {
        "" => format!("arg{}", given.index),
        name => plain(name),
    };
    let kernel = match launch.kernel.as_str() {
        "" => "kernel".to_owned(),
        name => plain(name),
    };
    format!("{kernel}.{argument}")
}

/// Element type of a tensor; for a pointer to bytes, guessed from them. Computed values may be much smaller than
/// measured ones: a softmax has any magnitude.
pub(super) fn element(type_name: &str, bytes: &[u8], computed: bool) -> ElementType {
    let word = type_name
        .split([' ', '*'])
        .filter(|word| !word.is_empty() && !word.starts_with("__"))
        .find(|word| !matches!(*word, "const" | "volatile" | "restrict" | "global"));
    let scalar = word
        .unwrap_or_default()
        .trim_end_matches(|c: char| c.is_ascii_digit());
    let dtype = match scalar {
        "float" => ElementType::F32,
        "half" => ElementType::F16,
        "double" => ElementType::F64,
        "int" => ElementType::I32,
        "uint" => ElementType::U32,
        "short" => ElementType::I16,
        "ushort" => ElementType::U16,
        "long" => ElementType::I64,
        "ulong" => ElementType::U64,
        _ if looks_like_halves(bytes, computed) => ElementType::F16,
        _ if looks_like_floats(bytes, computed) => ElementType::F32,
        _ if looks_like_integers(bytes) => ElementType::I32,
        "char" => ElementType::I8,
        _ => ElementType::U8,
    };
    match bytes.len().is_multiple_of(dtype.bytes()) {
        true => dtype,
        false => ElementType::U8,
    }
}

/// 16-bit floats of everyday size. The halves of a 32-bit number differ in size, and the two bytes of a pair of pixels
/// do not.
fn looks_like_halves(bytes: &[u8], computed: bool) -> bool {
    const FEWEST: u32 = 8;
    const BIAS: u32 = 15;
    /// Exponents; computed values may be subnormal.
    const EVERYDAY: std::ops::RangeInclusive<u32> = 1..=BIAS + 6;
    let everyday = |high: u8| {
        let exponent = u32::from(high >> 2) & 0x1f;
        EVERYDAY.contains(&exponent) || computed && exponent < *EVERYDAY.start()
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    // Per half of a word: count, usual ones, sum of exponents.
    let mut sides = [(0u32, 0u32, 0u32); 2];
    let mut alike = 0u32;
    for (index, &[low, high]) in pairs.iter().enumerate() {
        let (count, usual, exponents) = &mut sides[index % 2];
        if [low, high] != [0, 0] {
            *count += 1;
            *usual += u32::from(everyday(high));
            *exponents += u32::from(high >> 2) & 0x1f;
            alike += u32::from(everyday(low));
        }
    }
    let [first, second] = sides;
    let usual = |(count, usual, _): (u32, u32, u32)| {
        count >= FEWEST && u64::from(usual) * 20 > u64::from(count) * 19
    };
    let mean = |(count, _, sum): (u32, u32, u32)| f64::from(sum) / f64::from(count.max(1));
    let count = first.0 + second.0;
    rest.is_empty()
        && usual(first)
        && usual(second)
        && (mean(first) - mean(second)).abs() < 1.5
        && u64::from(alike) * 20 < u64::from(count) * 17
}

fn looks_like_integers(bytes: &[u8]) -> bool {
    const FEWEST: usize = 4;
    const SMALL: u32 = 1 << 24;
    let (words, rest) = bytes.as_chunks::<4>();
    let values = words.iter().map(|word| i32::from_le_bytes(*word));
    rest.is_empty()
        && values.clone().all(|value| value.unsigned_abs() < SMALL)
        && values.filter(|value| *value != 0).count() >= FEWEST
}

fn looks_like_floats(bytes: &[u8], computed: bool) -> bool {
    let smallest = if computed { f32::MIN_POSITIVE } else { 1e-12 };
    let (words, rest) = bytes.as_chunks::<4>();
    let values = words.iter().map(|word| f32::from_le_bytes(*word));
    let (mut nonzero, mut usual) = (0usize, 0usize);
    for value in values.filter(|value| value.to_bits() != 0) {
        if !value.is_finite() {
            return false;
        }
        nonzero += 1;
        usual += usize::from((smallest..1e9).contains(&value.abs()));
    }
    rest.is_empty() && nonzero > 0 && usual * 10 > nonzero * 9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_become_short_and_stay_apart() {
        assert_eq!(plain("add<int, 4>"), "add_int__4_");
        let names = ["k".repeat(110), "k".repeat(111), "k".repeat(112)].map(|name| plain(&name));
        assert_eq!(names[0], "k".repeat(110));
        assert_ne!(names[1], names[2]);
        assert!(names.iter().all(|name| name.len() == LONGEST));
    }

    #[test]
    fn types_come_from_arguments_or_values() {
        let floats: Vec<u8> = (1..9)
            .flat_map(|i| (i as f32 * 0.3).to_le_bytes())
            .collect();
        let picture: Vec<u8> = (0..64).map(|i| 200 + i % 7).collect();
        for (type_name, bytes, expected) in [
            ("float*", &floats, ElementType::F32),
            ("const __global float4 *", &floats, ElementType::F32),
            ("half*", &floats, ElementType::F16),
            ("const uint*", &floats, ElementType::U32),
            ("uchar*", &floats, ElementType::F32),
            ("uchar*", &picture, ElementType::U8),
            ("char*", &picture, ElementType::I8),
            ("", &picture, ElementType::U8),
            ("float*", &vec![1; 7], ElementType::U8),
        ] {
            assert_eq!(element(type_name, bytes, false), expected, "{type_name}");
        }
        let softmax: Vec<u8> = (0..8).flat_map(|i| 1e-4f32.powi(i).to_le_bytes()).collect();
        assert_eq!(element("uchar*", &softmax, true), ElementType::F32);
        assert_eq!(element("uchar*", &softmax, false), ElementType::U8);
    }

    #[test]
    fn pointers_to_bytes_are_told_apart_by_values() {
        let noise = |i: u32| {
            let x = (i + 1).wrapping_mul(0x9e37_79b9);
            (x ^ (x >> 15)).wrapping_mul(0x85eb_ca6b) >> 8
        };
        let real = |i: u32| (noise(i) as f32 / (1 << 24) as f32 - 0.5) * 0.3;
        let half = |value: f32| {
            let bits = value.to_bits();
            let magnitude = (bits & 0x7fff_ffff).saturating_sub(112 << 23) >> 13;
            ((bits >> 16 & 0x8000) as u16 | magnitude as u16).to_le_bytes()
        };
        let floats: Vec<u8> = (0..256).flat_map(|i| real(i).to_le_bytes()).collect();
        let constants: Vec<u8> = (0..64)
            .flat_map(|i| [0.1f32, 0.3, 0.7][i % 3].to_le_bytes())
            .collect();
        let round: Vec<u8> = (1..64)
            .flat_map(|i| (i as f32 * 0.5).to_le_bytes())
            .collect();
        let halves: Vec<u8> = (0..255).flat_map(|i| half(real(i))).collect();
        let shares: Vec<u8> = (0..255).flat_map(|i| half(real(i).abs() * 1e-2)).collect();
        let biases: Vec<u8> = (0..32)
            .flat_map(|i| (noise(i) as i32 % 4000 - 2000).to_le_bytes())
            .collect();
        let smooth: Vec<u8> = (0..256).map(|i| 60 + (i % 16) as u8).collect();
        let wide: Vec<u8> = (0..256).map(|i| noise(i) as u8).collect();
        for (what, bytes, computed, expected) in [
            ("floats", &floats, false, ElementType::F32),
            ("constants", &constants, false, ElementType::F32),
            ("round", &round, false, ElementType::F32),
            ("halves", &halves, false, ElementType::F16),
            ("shares", &shares, true, ElementType::F16),
            ("biases", &biases, false, ElementType::I32),
            ("wide", &wide, false, ElementType::U8),
        ] {
            assert_eq!(element("uchar*", bytes, computed), expected, "{what}");
        }
        assert_ne!(element("uchar*", &smooth, false), ElementType::F16);
    }

    #[test]
    fn names_are_plain() {
        let launch = Launched {
            id: 0,
            kernel: "a<b>".into(),
            global: [1; 3],
            jobs: 0,
            given: vec![],
            scalars: vec![],
        };
        let mut given = Given {
            object: 0,
            bytes: 0..u64::MAX,
            index: 3,
            name: "src ptr".into(),
            type_name: String::new(),
        };
        assert_eq!(name(&launch, &given), "a_b_.src_ptr");
        given.name.clear();
        assert_eq!(name(&launch, &given), "a_b_.arg3");
    }
}
