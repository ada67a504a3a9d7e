// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sample shaders, against Mesa's text and back.

use std::fs;

use crate::support::{binaries, shared};
use mali_isa::valhall::{Instruction, Shader, assemble};

fn texts(lines: &str) -> Vec<&str> {
    let lines = lines.lines().filter_map(|line| line.split_once("  "));
    lines.map(|(_, text)| text.trim_end()).collect()
}

#[test]
fn samples_agree_with_mesa_and_assemble_to_themselves() {
    let Some(folder) = shared("reference/valhall/samples/shaders") else {
        return;
    };
    let (mut shaders, mut words) = (0, 0);
    for file in binaries(folder) {
        let name = file.display();
        let code = fs::read(&file).unwrap();
        let shader = Shader::decode(&code).unwrap_or_else(|error| panic!("{name}: {error}"));
        let theirs = fs::read_to_string(file.with_extension("asm")).unwrap();
        let theirs = texts(&theirs);
        // Mesa prints up to the zero words; the shader ends earlier.
        let all: Vec<u64> = code
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .take_while(|word| *word != 0)
            .collect();
        assert_eq!(shader.words() as usize, all.len(), "{name}");
        assert_eq!(theirs.len(), all.len(), "{name}");
        for (word, theirs) in all.into_iter().zip(theirs) {
            let instruction = Instruction::decode(word).unwrap();
            let text = instruction.to_string();
            assert_eq!(text, theirs, "{name}");
            assert_eq!(assemble(&text), Ok(word), "{name}: {text}");
            assert_eq!(instruction.check(), Ok(()), "{name}: {text}");
            words += 1;
        }
        shaders += 1;
    }
    assert_eq!((shaders, words), (134, 20_044));
}
