// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/reasons.toml: why a dependency is there, and why a crate has unsafe code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::Deserialize;

use crate::{
    error::{Error, Result},
    workspace::{Crate, Unsafe},
};

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reasons {
    /// What each crate of the registry is used for.
    pub(super) dependencies: BTreeMap<String, String>,
    /// Why a crate of ours has unsafe code.
    #[serde(rename = "unsafe")]
    pub(super) unsafe_code: BTreeMap<String, String>,
}

impl Reasons {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Reasons> {
        let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
        toml::from_str(&text).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
    }

    /// Reasons that are missing, and reasons for what is not there.
    pub(super) fn complaints(&self, crates: &[Crate]) -> Vec<String> {
        let used: BTreeSet<&str> = crates
            .iter()
            .flat_map(|known| &known.dependencies)
            .filter(|dependency| !dependency.ours)
            .map(|dependency| dependency.name.as_str())
            .collect();
        let with_unsafe: BTreeSet<&str> = crates
            .iter()
            .filter(|known| known.unsafe_code != Unsafe::Forbidden)
            .map(|known| known.name.as_str())
            .collect();
        let mut found = differences("dependency", &used, &self.dependencies);
        found.extend(differences(
            "crate without #![forbid(unsafe_code)]",
            &with_unsafe,
            &self.unsafe_code,
        ));
        found
    }
}

fn differences(
    what: &str,
    there: &BTreeSet<&str>,
    reasons: &BTreeMap<String, String>,
) -> Vec<String> {
    let without = there
        .iter()
        .filter(|name| reasons.get(**name).is_none_or(|why| why.trim().is_empty()))
        .map(|name| format!("docs/reasons.toml has no reason for the {what} {name}"));
    let unused = reasons
        .keys()
        .filter(|name| !there.contains(name.as_str()))
        .map(|name| format!("docs/reasons.toml has a reason for {name}, which is no {what}"));
    without.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_reason_and_each_reason_is_for_something() {
        let there = BTreeSet::from(["a", "b", "c"]);
        let reasons = [("a", "why"), ("b", " "), ("d", "why")];
        let reasons = reasons.map(|(name, why)| (name.to_string(), why.to_string()));
        assert_eq!(
            differences("crate", &there, &reasons.into()),
            [
                "docs/reasons.toml has no reason for the crate b",
                "docs/reasons.toml has no reason for the crate c",
                "docs/reasons.toml has a reason for d, which is no crate",
            ]
        );
    }
}
