// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that stay inside a directory anywhere.

/// In bytes.
pub const MAX_NAME: usize = 255;
/// Files beside a recording.
pub const MAX_FILES: u32 = 4096;

/// One to eight parts of letters, digits, `_`, `-`, `+`, `.`, separated by `/`; none starts with a dot.
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
