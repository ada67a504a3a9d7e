// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why tests do not pass: `tools/guest/piglit/causes.toml`.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Whose {
    Model,
    Runtime,
    /// The test asks for what the standard does not promise.
    Test,
}

impl Whose {
    pub(super) fn word(self) -> &'static str {
        match self {
            Whose::Model => "model",
            Whose::Runtime => "runtime",
            Whose::Test => "test",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cause {
    pub(super) whose: Whose,
    pub(super) why: String,
    /// A final star stands for any end.
    tests: Vec<String>,
    /// All GPUs if empty.
    #[serde(default)]
    gpus: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Causes {
    cause: Vec<Cause>,
}

impl Causes {
    pub(super) fn of(&self, test: &str, gpu: &str) -> Option<&Cause> {
        self.cause.iter().find(|cause| {
            (cause.gpus.is_empty() || cause.gpus.iter().any(|name| name == gpu))
                && cause.tests.iter().any(|name| match name.strip_suffix('*') {
                    Some(start) => test.starts_with(start),
                    None => test == name,
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_found_by_name_and_gpu() {
        let text =
            "[[cause]]\nwhose = 'runtime'\nwhy = 'x'\ntests = ['a', 'b@*']\ngpus = ['g72']\n";
        let causes: Causes = toml::from_str(text).expect("valid");
        assert_eq!(
            causes.of("b@c", "g72").map(|cause| cause.whose),
            Some(Whose::Runtime)
        );
        assert!(causes.of("a", "g72").is_some());
        assert!(causes.of("ab", "g72").is_none());
        assert!(causes.of("a", "g52").is_none());
        assert!(toml::from_str::<Causes>("[[cause]]\nwhose = 'nobody'\n").is_err());
    }
}
