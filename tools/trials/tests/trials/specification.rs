// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/reference/specification.md's promises have tests.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;

const GUEST: &str = "tools/guest/src/tests/mod.rs";

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Findings {
    finding: Vec<Finding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Finding {
    id: String,
    what: String,
    severity: String,
    commit: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    guest: Vec<String>,
    #[serde(default)]
    foreign: Vec<String>,
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn exists(test: &str) {
    let (file, name) = test.split_once(": ").expect("FILE: TEST");
    let source = read(file);
    if file == GUEST {
        let quoted = format!("\"{name}\"");
        assert!(source.contains(&quoted), "{GUEST} has no test {name}");
        return;
    }
    let at = source.find(&format!("fn {name}("));
    let at = at.unwrap_or_else(|| panic!("{file} has no test {name}"));
    // A program without the test harness has a table of its tests.
    let listed =
        source.contains("fn main() -> ExitCode") && source.contains(&format!("\"{name}\","));
    assert!(
        listed || source[..at].trim_end().ends_with("#[test]"),
        "{name} in {file} is no test"
    );
}

#[test]
fn every_finding_is_mended_or_says_why_not() {
    let Findings { finding } = toml::from_str(&read("docs/internals/findings.toml")).unwrap();
    let found: Vec<&str> = finding.iter().map(|finding| finding.id.as_str()).collect();
    let reviews = [
        ("N", (1..=15).collect()),
        ("R", (1..=9).collect()),
        ("E", vec![4, 9, 15, 18]),
        ("A", (1..=13).collect()),
        ("D", (1..=8).collect()),
    ];
    let all: Vec<String> = reviews
        .iter()
        .flat_map(|(review, all)| all.iter().map(move |number| format!("{review}{number}")))
        .collect();
    assert_eq!(found, all);
    let hostile = read("nano-driver/tests/hostile.c");
    let cases = read("tools/foreign/cases.py") + &read("tools/foreign/programs.py");
    for finding in &finding {
        let id = &finding.id;
        assert!(!finding.what.is_empty(), "{id}");
        let hash = finding.commit.chars().all(|c| c.is_ascii_hexdigit());
        assert!(
            hash && finding.commit.len() == 8,
            "{id}: {}",
            finding.commit
        );
        let tested = finding.tests.len() + finding.guest.len() + finding.foreign.len();
        match finding.severity.as_str() {
            "high" | "medium" => assert!(tested > 0, "{id} has no test"),
            severity => {
                assert!(severity == "low", "{id}: {severity}");
                assert!(tested > 0 || !finding.why.is_empty(), "{id}: why no test?");
            }
        }
        assert!(finding.why.is_empty() || finding.why.ends_with('.'), "{id}");
        finding.tests.iter().for_each(|test| exists(test));
        for test in &finding.guest {
            match test.strip_prefix("hostile: ") {
                Some(function) => {
                    assert!(hostile.contains(&format!("void {function}(")), "{test}");
                }
                None => exists(&format!("{GUEST}: {test}")),
            }
        }
        for case in &finding.foreign {
            assert!(cases.contains(&format!("case(\"{case}\"")), "{id}: {case}");
        }
    }
}

#[test]
fn every_named_test_exists() {
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
            exists(test);
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
