// SPDX-License-Identifier: MIT OR Apache-2.0
//! Release builds of parsers check for overflow.

use std::path::Path;

/// Others' crates, and those that execute.
const WITHOUT: [&str; 4] = [
    "\"*\"",
    "gpureplay-memory",
    "gpureplay-shader",
    "mali-shader",
];

#[test]
fn releases_check_for_overflow() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let release = manifest.split("[profile.release]\n").nth(1).unwrap();
    let (own, exceptions) = release.split_once("\n[").unwrap();
    assert!(own.contains("overflow-checks = true"), "{own}");
    let named: Vec<_> = exceptions
        .split("profile.release.package.")
        .filter(|part| part.contains("overflow-checks = false"))
        .filter_map(|part| part.split_once(']').map(|(name, _)| name))
        .collect();
    assert_eq!(named, WITHOUT);
    if !cfg!(debug_assertions) {
        let sum = std::panic::catch_unwind(|| std::hint::black_box(u8::MAX) + 1);
        assert!(sum.is_err(), "overflow is not seen");
    }
}
