// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every promise of docs/reference/specification.md has tests in limits.toml beside it, and every test that this names exists.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;

/// The list of tests in the guest, which are not functions of their own.
const GUEST: &str = "tools/guest/src/tests/mod.rs";

/// limits.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    promise: Vec<Promise>,
    limit: Vec<Limit>,
    defect: Vec<Defect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promise {
    number: usize,
    tests: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    resource: String,
    #[serde(rename = "limit")]
    _limit: String,
    #[serde(rename = "beyond")]
    _beyond: String,
    tests: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Defect {
    of: String,
    tests: Vec<String>,
}

#[test]
fn every_named_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| {
        std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let limits: Limits = toml::from_str(&read("docs/reference/limits.toml")).unwrap();
    let promises = limits.promise.iter();
    let promises = promises.map(|promise| (promise.number.to_string(), &promise.tests));
    let named = promises
        .chain(
            limits
                .limit
                .iter()
                .map(|limit| (limit.resource.clone(), &limit.tests)),
        )
        .chain(
            limits
                .defect
                .iter()
                .map(|defect| (defect.of.clone(), &defect.tests)),
        );
    for (what, tests) in named {
        assert!(!tests.is_empty(), "{what} has no test");
        for test in tests {
            let (file, name) = test.split_once(": ").expect("FILE: TEST");
            let source = read(file);
            if file == GUEST {
                let quoted = format!("\"{name}\"");
                assert!(source.contains(&quoted), "{GUEST} has no test {name}");
                continue;
            }
            let at = source.find(&format!("fn {name}("));
            let at = at.unwrap_or_else(|| panic!("{file} has no test {name}"));
            // A program without the harness has a table of its tests.
            let listed = source.contains("fn main() -> ExitCode")
                && source.contains(&format!("\"{name}\","));
            assert!(
                listed || source[..at].trim_end().ends_with("#[test]"),
                "{name} in {file} is no test"
            );
        }
    }
    let page = read("docs/reference/specification.md");
    let stated: BTreeSet<usize> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next()?.parse().ok())
        .collect();
    let tested = limits
        .promise
        .iter()
        .map(|promise| promise.number)
        .collect();
    assert_eq!(stated, tested, "promises of the page, and of limits.toml");
    assert_eq!(limits.defect.len(), 11);
}
