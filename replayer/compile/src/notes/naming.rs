// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and element types of tensors, from the kernel arguments that use them.

use gpureplay_io::{Element, ElementType};

use super::events::{Given, Launched};

/// `kernel.argument`, of letters, digits, `_`, `-` and one dot.
pub(super) fn name(launch: &Launched, given: &Given) -> String {
    let plain = |text: &str| -> String {
        let kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        text.chars()
            .map(|c| if kept(c) { c } else { '_' })
            .collect()
    };
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

/// Element type of a tensor: the argument's, or what its bytes look like where the argument is a pointer to bytes. What a kernel
/// `computed` may be much smaller than what somebody measured: a softmax has any magnitude.
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
        _ if looks_like_floats(bytes, computed) => ElementType::F32,
        "char" => ElementType::I8,
        _ => ElementType::U8,
    };
    match bytes.len().is_multiple_of(dtype.bytes()) {
        true => dtype,
        false => ElementType::U8,
    }
}

/// Whether bytes are 32-bit numbers of everyday size: libraries that serve several types declare pointers to bytes.
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
