// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which names files may have: such that they stay inside a directory on any system.

/// Longest name in bytes.
pub const MAX_NAME: usize = 255;
/// Largest number of files beside a recording.
pub const MAX_FILES: u32 = 4096;

/// Whether a name is one to eight components of letters, digits, `_`, `-`, `+`, `.`, separated by `/`, none of which
/// starts with a dot.
pub fn is_safe(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.split('/').count() <= 8
        && name.split('/').all(|component| {
            !component.is_empty()
                && !component.starts_with('.')
                && component
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-+.".contains(&byte))
        })
}

/// A safe name out of bytes.
pub(crate) fn safe(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes)
        .ok()
        .filter(|name| is_safe(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        for name in ["a", "inputs/a.npy", "conv1.weight", "a+b/c-d/e_f"] {
            assert!(is_safe(name), "{name}");
        }
        for name in [
            "",
            "/",
            "/etc/passwd",
            "a/",
            "a//b",
            "..",
            "../a",
            "a/../b",
            ".ssh",
            "a b",
            "a\\b",
            "c:",
            "a\0",
            "ä",
            "1/2/3/4/5/6/7/8/9",
        ] {
            assert!(!is_safe(name), "{name}");
        }
        assert!(is_safe(
            &std::string::String::from_utf8(std::vec![b'a'; 255]).unwrap()
        ));
        assert!(!is_safe(
            &std::string::String::from_utf8(std::vec![b'a'; 256]).unwrap()
        ));
    }
}
