// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders: decoding what was encoded gives the same clause.
#![no_main]

use mali_isa::{decode_clause, encode_clause};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok((clause, _)) = decode_clause(bytes) {
        if let Ok(again) = encode_clause(&clause) {
            let decoded = decode_clause(&again).map(|(clause, _)| clause);
            assert_eq!(decoded.as_ref(), Ok(&clause));
        }
    }
    let _ = mali_isa::Shader::decode(bytes);
});
