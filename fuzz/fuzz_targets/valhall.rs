// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valhall shaders: within limits, text assembles to something with the same text.
#![no_main]

use mali_isa::valhall::{Instruction, Shader, assemble};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for word in bytes.chunks_exact(mali_isa::valhall::WORD_BYTES) {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let Some(instruction) = Instruction::decode(word) else {
            continue;
        };
        let text = instruction.to_string();
        let again = assemble(&text).map(Instruction::decode);
        if instruction.check().is_ok() {
            let again = again.ok().flatten().map(|again| again.to_string());
            assert_eq!(again.as_deref(), Some(text.as_str()), "{word:#x}");
        }
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        let _ = assemble(text);
    }
    if let Ok(shader) = Shader::decode(bytes) {
        let _ = shader.to_string();
    }
});
