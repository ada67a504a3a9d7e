// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells of tables.

pub(crate) fn dash() -> String {
    "-".into()
}

/// At most seven characters: `12.3 M`.
pub(crate) fn short(count: u64) -> String {
    match count {
        0..=999_999 => count.to_string(),
        1_000_000..=999_999_999 => format!("{:.1} M", count as f64 / 1e6),
        _ => format!("{:.1} G", count as f64 / 1e9),
    }
}
