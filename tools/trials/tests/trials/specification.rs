// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test that docs/reference/specification.md names exists.

use std::path::Path;

/// The list of tests in the guest, which are not functions of their own.
const GUEST: &str = "tools/guest/src/tests/mod.rs";

#[test]
fn every_named_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/reference/specification.md")).unwrap();
    let mut named = 0;
    for line in text.lines().filter(|line| line.starts_with('|')) {
        // Cells hold `file`: `test`.
        let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        for pair in quoted.windows(2).filter(|pair| pair[0].ends_with(".rs")) {
            let source = std::fs::read_to_string(root.join(pair[0]))
                .unwrap_or_else(|error| panic!("{}: {error}", pair[0]));
            named += 1;
            if pair[0] == GUEST {
                let quoted = format!("\"{}\"", pair[1]);
                assert!(source.contains(&quoted), "{GUEST} has no test {}", pair[1]);
                continue;
            }
            let test = source.find(&format!("fn {}(", pair[1]));
            let test = test.unwrap_or_else(|| panic!("{} has no test {}", pair[0], pair[1]));
            // A program without the harness has a table of its tests.
            let listed = source.contains("fn main() -> ExitCode")
                && source.contains(&format!("\"{}\",", pair[1]));
            assert!(
                listed || source[..test].trim_end().ends_with("#[test]"),
                "{} in {} is no test",
                pair[1],
                pair[0]
            );
        }
    }
    // Each promise and each defect of the original has one.
    let promises = text.lines().filter(|line| {
        line.strip_prefix("| ")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    assert!(named >= promises.count() + 10, "{named} tests are named");
}
