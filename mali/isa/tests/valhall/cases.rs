// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mesa's assembler tests, both ways.

use std::{env, fs, path::PathBuf};

use mali_isa::valhall::{Instruction, assemble};

/// From `cargo xtask mesa --cases` or `GPUREPLAY_VALHALL_CASES`.
fn cases() -> Option<String> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let given = set("GPUREPLAY_VALHALL_CASES").map(PathBuf::from);
    let made = cache.map(|cache| cache.join("gpureplay/valhall-cases.txt"));
    let text = given
        .or(made)
        .and_then(|path| fs::read_to_string(path).ok());
    if text.is_none() {
        eprintln!("SKIPPED: no cases of Mesa's assembler (cargo xtask mesa --cases)");
    }
    text
}

#[test]
fn cases_of_mesa_decode_and_assemble() {
    let Some(text) = cases() else { return };
    let mut count = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (bytes, text) = line.split_at(23);
        let mut word = [0; 8];
        for (byte, digits) in word.iter_mut().zip(bytes.split(' ')) {
            *byte = u8::from_str_radix(digits, 16).unwrap();
        }
        let (word, text) = (u64::from_le_bytes(word), text.trim());
        let instruction = Instruction::decode(word).unwrap();
        assert_eq!(instruction.to_string(), text, "{word:#018x}");
        assert_eq!(assemble(text), Ok(word), "{text}");
        count += 1;
    }
    assert_eq!(count, 244);
}
