// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/reasons.toml: why dependencies and unsafe code.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;

use crate::{
    error::{Error, Result},
    files,
    workspace::{Crate, Unsafe},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reasons {
    pub(crate) dependencies: BTreeMap<String, String>,
    #[serde(rename = "unsafe")]
    pub(crate) unsafe_code: BTreeMap<String, String>,
    /// In docs/internals/unsafe.md.
    #[serde(skip)]
    explained: BTreeMap<String, String>,
}

impl Reasons {
    pub(crate) fn read(top: &Path) -> Result<Reasons> {
        let path = top.join("docs/reasons.toml");
        let mut reasons: Reasons = toml::from_str(&files::text(&path)?)
            .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
        reasons.explained = explained(&files::text(top.join("docs/internals/unsafe.md"))?);
        Ok(reasons)
    }

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
        let folders = crates
            .iter()
            .filter(|known| known.unsafe_code != Unsafe::Forbidden)
            .map(|known| known.folder.as_str())
            .collect();
        let mut found = differences("dependency", &used, &self.dependencies);
        let what = "crate without #![forbid(unsafe_code)]";
        found.extend(differences(what, &with_unsafe, &self.unsafe_code));
        let what = "folder of such a crate in docs/internals/unsafe.md";
        found.extend(differences(what, &folders, &self.explained));
        found
    }
}

fn explained(page: &str) -> BTreeMap<String, String> {
    let sections = page.split("\n## `").skip(1);
    let folder = |section: &str| {
        let (folder, rest) = section.split_once("`\n")?;
        let rows = rest.split_once("| --- | --- | --- |\n");
        let row = rows.and_then(|(_, rows)| rows.lines().next());
        Some((folder.to_string(), row.unwrap_or_default().to_string()))
    };
    sections.filter_map(folder).collect()
}

fn differences(
    what: &str,
    there: &BTreeSet<&str>,
    reasons: &BTreeMap<String, String>,
) -> Vec<String> {
    let without = there
        .iter()
        .filter(|name| reasons.get(**name).is_none_or(|why| why.trim().is_empty()))
        .map(|name| format!("there is no reason for the {what} {name}"));
    let unused = reasons
        .keys()
        .filter(|name| !there.contains(name.as_str()))
        .map(|name| format!("there is a reason for {name}, which is no {what}"));
    without.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_without_a_table_explains_nothing() {
        let page = "\n## `a`\n\n| --- | --- | --- |\n| 1 | 2 | 3 |\n\n## `b`\n\nNothing.\n";
        let found = explained(page);
        assert_eq!((&*found["a"], &*found["b"]), ("| 1 | 2 | 3 |", ""));
    }

    #[test]
    fn each_has_a_reason_and_each_reason_is_for_something() {
        let there = BTreeSet::from(["a", "b", "c"]);
        let reasons = [("a", "why"), ("b", " "), ("d", "why")];
        let reasons = reasons.map(|(name, why)| (name.to_string(), why.to_string()));
        assert_eq!(
            differences("crate", &there, &reasons.into()),
            [
                "there is no reason for the crate b",
                "there is no reason for the crate c",
                "there is a reason for d, which is no crate",
            ]
        );
    }
}
