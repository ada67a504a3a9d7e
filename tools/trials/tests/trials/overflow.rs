// SPDX-License-Identifier: MIT OR Apache-2.0
//! Release builds of everything that parses bytes of others check for overflow.

use std::path::Path;

/// Members that may go without: they execute or generate, or are no part of what is used.
const WITHOUT: [&str; 12] = [
    "gpureplay-cuda-abi",
    "gpureplay-cuda-fake",
    "gpureplay-guest",
    "gpureplay-kit",
    "gpureplay-on-model",
    "gpureplay-task",
    "gpureplay-trials",
    "kbase-client",
    "mali-memory",
    "mali-regs",
    "mali-shader",
    "xtask",
];

#[test]
fn releases_check_for_overflow() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let manifest = read(&root.join("Cargo.toml"));
    let members = manifest.split("members = [").nth(1).unwrap();
    let members = members.split(']').next().unwrap();
    let mut checked = 0;
    for member in members.split('"').skip(1).step_by(2) {
        let package = read(&root.join(member).join("Cargo.toml"));
        let name = package
            .lines()
            .find_map(|line| line.strip_prefix("name = "))
            .unwrap()
            .trim_matches('"');
        let section = format!("[profile.release.package.{name}]\noverflow-checks = true\n");
        if WITHOUT.contains(&name) {
            continue;
        }
        assert!(manifest.contains(&section), "{name} does not");
        checked += 1;
    }
    assert!(checked >= 12);
}
