// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo mutants`' changes, and equivalent ones.

use std::{collections::BTreeMap, path::Path, process::Command};

use proc_macro2::LineColumn;
use serde::Deserialize;

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
    #[serde(other)]
    Other,
}

/// Lines and columns count from 1.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Span {
    pub(super) start: Position,
}

impl Span {
    pub(super) fn start(self) -> LineColumn {
        LineColumn {
            line: self.start.line,
            column: self.start.column.saturating_sub(1),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Change {
    /// From 1.
    #[serde(skip)]
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) package: String,
    pub(super) file: String,
    pub(super) genre: Genre,
    pub(super) replacement: String,
    pub(super) span: Span,
}

impl Change {
    /// Without the place: `replace == with != in write`.
    fn what(&self) -> &str {
        self.name.splitn(4, ':').nth(3).unwrap_or_default().trim()
    }

    fn line<'t>(&self, text: &'t str) -> &'t str {
        text.lines()
            .nth(self.span.start.line.saturating_sub(1))
            .unwrap_or_default()
            .trim()
    }
}

pub(super) fn list(packages: &[&str]) -> Result<Vec<Change>> {
    let mut command = Command::new("cargo");
    command
        .current_dir(root())
        .args(["mutants", "--list", "--json"]);
    command.args(packages.iter().flat_map(|name| ["--package", name]));
    let listed = gpureplay_task::output(&mut command)?;
    let mut changes: Vec<Change> = serde_json::from_str(&listed).map_err(|error| {
        Error::Usage(format!(
            "the list of `cargo mutants` cannot be read: {error}"
        ))
    })?;
    for (number, change) in (1..).zip(&mut changes) {
        change.number = number;
    }
    Ok(changes)
}

/// Tests cannot notice it, or need not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    file: String,
    /// As cargo-mutants lists it, with the function.
    what: String,
    line: String,
    #[serde(rename = "reason")]
    _reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Same {
    #[serde(default)]
    same: Vec<Known>,
}

pub(super) fn known() -> Result<Vec<Known>> {
    let path = root().join("tools/xtask/mutation.toml");
    let text = files::text(&path)?;
    let same: Same = toml::from_str(&text)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
    Ok(same.same)
}

#[derive(Default)]
pub(super) struct Texts(BTreeMap<String, String>);

impl Texts {
    pub(super) fn get(&mut self, file: &str) -> Result<&str> {
        if !self.0.contains_key(file) {
            let text = files::text(root().join(Path::new(file)))?;
            self.0.insert(file.to_owned(), text);
        }
        Ok(self.0.get(file).map_or("", String::as_str))
    }
}

impl Known {
    pub(super) fn is(&self, change: &Change, text: &str) -> bool {
        self.file == change.file && self.what == change.what() && self.line == change.line(text)
    }
}

impl std::fmt::Display for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.what, self.line)
    }
}
