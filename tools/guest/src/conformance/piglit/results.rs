// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runner's report as text, JSON and tables.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::causes::{Causes, Whose};
use gpureplay_task::measured::Table;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum End {
    Pass,
    Warn,
    Fail,
    Skip,
    Crash,
    Timeout,
}

impl End {
    fn word(self) -> &'static str {
        match self {
            End::Pass => "pass",
            End::Warn => "warn",
            End::Fail => "fail",
            End::Skip => "skip",
            End::Crash => "crash",
            End::Timeout => "timeout",
        }
    }

    fn is_good(self) -> bool {
        matches!(self, End::Pass | End::Skip)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Test {
    name: String,
    result: End,
    seconds: f64,
    detail: String,
    faults: Vec<String>,
}

#[derive(Deserialize)]
struct Begin {
    tests: usize,
}

#[derive(Debug, Default)]
pub(super) struct Results {
    expected: usize,
    tests: Vec<Test>,
}

#[derive(Serialize)]
struct Counts {
    pass: usize,
    fail: usize,
    skip: usize,
    crash: usize,
    timeout: usize,
    not_run: usize,
}

impl Results {
    pub(super) fn parse(text: &str) -> Results {
        let mut results = Results::default();
        for line in text.lines() {
            if let Ok(test) = serde_json::from_str::<Test>(line) {
                results.tests.retain(|other| other.name != test.name);
                results.tests.push(test);
            } else if let Ok(begin) = serde_json::from_str::<Begin>(line) {
                results.expected = results.expected.max(begin.tests);
            }
        }
        results.tests.sort_by(|a, b| a.name.cmp(&b.name));
        results
    }

    pub(super) fn complete(&self) -> bool {
        !self.tests.is_empty() && self.tests.len() >= self.expected
    }

    pub(super) fn passed(&self) -> usize {
        self.count(End::Pass)
    }

    fn count(&self, end: End) -> usize {
        self.tests.iter().filter(|test| test.result == end).count()
    }

    fn counts(&self) -> Counts {
        Counts {
            pass: self.passed(),
            // A warning means a wrong but tolerated result.
            fail: self.count(End::Fail) + self.count(End::Warn),
            skip: self.count(End::Skip),
            crash: self.count(End::Crash),
            timeout: self.count(End::Timeout),
            not_run: self.expected.saturating_sub(self.tests.len()),
        }
    }

    fn rate(&self) -> f64 {
        let run = self.tests.len() - self.count(End::Skip);
        100.0 * self.passed() as f64 / run.max(1) as f64
    }

    fn bad(&self) -> impl Iterator<Item = &Test> {
        self.tests.iter().filter(|test| !test.result.is_good())
    }

    /// Skipped and missing tests count too: they show nothing.
    pub(super) fn not_passed<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<String> {
        names
            .filter_map(
                |name| match self.tests.iter().find(|test| test.name == name) {
                    Some(test) if test.result == End::Pass => None,
                    Some(test) => Some(format!("{name} ({}: {})", test.result.word(), test.detail)),
                    None => Some(format!("{name} (not run)")),
                },
            )
            .collect()
    }

    pub(super) fn unexplained(&self, causes: &Causes, gpu: &str) -> Vec<String> {
        self.bad()
            .filter(|test| {
                causes
                    .of(&test.name, gpu)
                    .is_none_or(|cause| cause.whose == Whose::Model)
            })
            .map(|test| format!("{} ({})", test.name, test.result.word()))
            .collect()
    }

    pub(super) fn text(&self, causes: &Causes, gpu: &str) -> String {
        let mut text = String::new();
        for test in self.bad() {
            let whose = causes
                .of(&test.name, gpu)
                .map_or("open", |cause| cause.whose.word());
            let (end, name, detail) = (test.result.word(), &test.name, &test.detail);
            let _ = writeln!(text, "{end} {name} ({whose}): {detail}");
            for fault in &test.faults {
                let _ = writeln!(text, "    {fault}");
            }
        }
        let sum = self.counts();
        let _ = writeln!(
            text,
            "{} passed, {} failed, {} skipped, {} crashed, {} timed out, {} not run; {:.1} % of those not skipped",
            sum.pass,
            sum.fail,
            sum.skip,
            sum.crash,
            sum.timeout,
            sum.not_run,
            self.rate()
        );
        text
    }

    pub(super) fn json(&self, gpu: &str) -> String {
        let value = json!({
            "gpu": gpu,
            "counts": self.counts(),
            "percent": self.rate(),
            "tests": self.tests,
        });
        value.to_string()
    }

    pub(super) fn tables(&self, causes: &Causes, gpu: &str) -> [Table; 2] {
        let sum = self.counts();
        let mut sums = Table::new(
            self.skips(),
            "Tests | Pass | Fail | Skip | Crash | Timeout | Not run | Of those not skipped, %",
        );
        let tests = self.tests.len() + sum.not_run;
        let Counts {
            pass,
            fail,
            skip,
            crash,
            timeout,
            not_run,
        } = sum;
        sums.row(json!([
            tests,
            pass,
            fail,
            skip,
            crash,
            timeout,
            not_run,
            self.rate()
        ]));
        let mut bad = Table::new("", "Test | Result | Whose | Cause");
        for test in self.bad() {
            let (whose, why) = match causes.of(&test.name, gpu) {
                Some(cause) => (cause.whose.word(), &cause.why),
                None => ("open", &test.detail),
            };
            bad.row(json!([test.name, test.result.word(), whose, why]));
        }
        [sums, bad]
    }

    fn skips(&self) -> String {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for test in self.tests.iter().filter(|test| test.result == End::Skip) {
            let reason = reason_of_skip(&test.detail);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => reasons.push((reason, 1)),
            }
        }
        reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let list: Vec<String> = reasons
            .into_iter()
            .map(|(reason, count)| format!("{count}: {reason}"))
            .collect();
        if list.is_empty() {
            String::new()
        } else {
            format!("Skipped: {}.", list.join("; "))
        }
    }
}

fn reason_of_skip(detail: &str) -> String {
    let reason = detail
        .split_once("because ")
        .map_or(detail, |(_, reason)| reason);
    let reason = reason.split(';').next().unwrap_or_default();
    reason.trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r##"noise
{"tests": 4}
{"name": "b", "result": "fail", "seconds": 1.0, "detail": "x|y", "faults": []}
{"name": "a", "result": "skip", "seconds": 1.0, "detail": "# Skipping device G because it is Monday.", "faults": []}
{"name": "c", "result": "crash", "seconds": 1.5, "detail": "SIGSEGV", "faults": ["js fault"]}
{"name": "b", "result": "pass", "seconds": 2.0, "detail": "", "faults": []}
"##;

    #[test]
    fn the_second_result_counts_and_what_is_missing_is_said() {
        let results = Results::parse(OUTPUT);
        let causes: Causes = toml::from_str("cause = []").expect("valid");
        assert!(!results.complete());
        let text = results.text(&causes, "g52");
        assert!(
            text.ends_with(
                "1 passed, 0 failed, 1 skipped, 1 crashed, 0 timed out, 1 not run; 50.0 % of those not skipped\n"
            ),
            "{text}"
        );
        assert_eq!(results.unexplained(&causes, "g52"), ["c (crash)"]);
        let [sums, bad] = results
            .tables(&causes, "g52")
            .map(|table| table.to_string());
        assert!(
            sums.contains("| 4 | 1 | 0 | 1 | 1 | 0 | 1 | 50.00 |"),
            "{sums}"
        );
        assert!(sums.contains("Skipped: 1: it is Monday."), "{sums}");
        assert!(bad.contains("| c | crash | open | SIGSEGV |"), "{bad}");
    }

    #[test]
    fn a_wanted_test_that_is_skipped_or_missing_did_not_pass() {
        let results = Results::parse(OUTPUT);
        assert!(results.not_passed(["b"].into_iter()).is_empty());
        let wrong = results.not_passed(["a", "b", "c", "d"].into_iter());
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert_eq!(wrong[2], "d (not run)");
    }

    #[test]
    fn a_written_cause_explains_unless_it_is_ours() {
        let results = Results::parse(OUTPUT);
        for (whose, unexplained) in [("runtime", 0), ("test", 0), ("model", 1)] {
            let text = format!("[[cause]]\nwhose = '{whose}'\nwhy = 'w'\ntests = ['c']\n");
            let causes: Causes = toml::from_str(&text).expect("valid");
            assert_eq!(results.unexplained(&causes, "g52").len(), unexplained);
        }
    }
}
