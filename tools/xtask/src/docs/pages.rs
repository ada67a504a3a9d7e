// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages' sections, as Markdown.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use serde::Deserialize;

use crate::{
    error::{Error, Result},
    files,
    rules::{Reasons, top},
    workspace::{Crate, Unsafe},
};

/// They use everything.
const NOT_DRAWN: [&str; 2] = ["tools", "fuzz"];

/// Without arrows that others imply.
pub(super) fn graph(crates: &[Crate]) -> String {
    let drawn: Vec<&Crate> = crates
        .iter()
        .filter(|known| !NOT_DRAWN.contains(&top(&known.folder)))
        .collect();
    let uses: BTreeMap<&str, BTreeSet<&str>> = drawn
        .iter()
        .map(|known| (known.name.as_str(), ours(known).collect()))
        .collect();
    let mut text = String::from("```mermaid\nflowchart TD\n");
    let folders: BTreeSet<&str> = drawn.iter().map(|known| top(&known.folder)).collect();
    for folder in folders {
        let _ = writeln!(text, "  subgraph {folder}");
        for known in drawn.iter().filter(|known| top(&known.folder) == folder) {
            let _ = writeln!(text, "    {}", known.name);
        }
        text.push_str("  end\n");
    }
    for (from, direct) in &uses {
        for to in direct {
            let implied = direct
                .iter()
                .any(|other| other != to && reaches(&uses, other, to));
            if !implied {
                let _ = writeln!(text, "  {from} --> {to}");
            }
        }
    }
    text.push_str("```\n");
    text
}

fn reaches(uses: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    uses.get(from).is_some_and(|direct| {
        direct
            .iter()
            .any(|next| *next == to || reaches(uses, next, to))
    })
}

fn ours(known: &Crate) -> impl Iterator<Item = &str> {
    known
        .dependencies
        .iter()
        .filter(|dependency| dependency.ours && !dependency.tests_only)
        .map(|dependency| dependency.name.as_str())
}

pub(super) fn table(crates: &[Crate]) -> String {
    let mut text =
        String::from("| Folder | Crate | What it is | Uses |\n| --- | --- | --- | --- |\n");
    for known in crates {
        let uses: Vec<&str> = ours(known).collect();
        let mut remarks = Vec::new();
        if known.no_std {
            remarks.push("`no_std`");
        }
        if !known.workspace.is_empty() {
            remarks.push("own workspace");
        }
        let remarks = match remarks.join(", ") {
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {}{remarks} | {} |",
            known.folder,
            known.name,
            known.description,
            uses.join(", ")
        );
    }
    text
}

pub(super) fn unsafe_code(crates: &[Crate], reasons: &Reasons) -> String {
    let mut text = String::from("| Crate | Unsafe code | Why |\n| --- | --- | --- |\n");
    for known in crates {
        let where_ = match known.unsafe_code {
            Unsafe::Forbidden => continue,
            Unsafe::Exceptions => "in modules that say `#![allow(unsafe_code)]`",
            Unsafe::Allowed => "allowed",
        };
        let why = reasons.unsafe_code.get(&known.name);
        let why = why.map_or("", String::as_str);
        let _ = writeln!(text, "| {} | {where_} | {why} |", known.name);
    }
    text
}

pub(super) fn dependencies(crates: &[Crate], reasons: &Reasons) -> String {
    let mut text = String::from("| Crate | Used by | For |\n| --- | --- | --- |\n");
    for (name, why) in &reasons.dependencies {
        let users: Vec<String> = crates
            .iter()
            .filter_map(|known| {
                let used = known.dependencies.iter().find(|used| used.name == *name)?;
                let remark = if used.tests_only { " (tests)" } else { "" };
                Some(format!("{}{remark}", known.name))
            })
            .collect();
        let _ = writeln!(text, "| {name} | {} | {why} |", users.join(", "));
    }
    text
}

#[derive(Deserialize)]
struct Limit {
    resource: String,
    limit: String,
    beyond: String,
    tests: Vec<String>,
}

pub(super) fn limits(top: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Limits {
        limit: Vec<Limit>,
    }
    let path = top.join("docs/reference/limits.toml");
    let text = files::text(&path)?;
    let limits: Limits = toml::from_str(&text)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
    let mut text =
        String::from("| Resource | Limit | Beyond it | Tests in |\n| --- | --- | --- | --- |\n");
    for limit in &limits.limit {
        let files: BTreeSet<String> = limit
            .tests
            .iter()
            .filter_map(|test| Some(format!("`{}`", test.split_once(": ")?.0)))
            .collect();
        let files = Vec::from_iter(files).join(", ");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {files} |",
            limit.resource, limit.limit, limit.beyond
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_a_row_each() {
        let table = limits(&crate::repository::root()).expect("limits.toml");
        assert!(table.contains("| Manifest | 1 MiB | refused unread | `replayer/"));
    }

    #[test]
    fn arrows_lead_on() {
        let uses = BTreeMap::from([
            ("a", BTreeSet::from(["b"])),
            ("b", BTreeSet::from(["c"])),
            ("c", BTreeSet::new()),
        ]);
        assert!(reaches(&uses, "a", "c"));
        assert!(!reaches(&uses, "c", "a"));
    }
}
