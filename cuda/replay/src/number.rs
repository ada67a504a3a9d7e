// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's numbers as text.

/// The likeliest number, as for `--set`: integer, or 32-bit float.
pub(crate) fn shown(word: u32) -> String {
    let float = f32::from_bits(word);
    if word >= 1 << 24 && (1e-9..1e9).contains(&float.abs()) {
        format!("{float:?}")
    } else {
        word.to_string()
    }
}
