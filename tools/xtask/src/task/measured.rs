// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables in measurements/NAME.json.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::{Error, Result},
    files,
};

/// Numbers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What, where, by which command.
    pub about: String,
    /// With units.
    pub columns: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Column names, separated by ` | `; none: only text.
    pub fn new(about: impl Into<String>, columns: &str) -> Self {
        Self {
            about: about.into(),
            columns: columns.split_terminator(" | ").map(str::to_owned).collect(),
            rows: Vec::new(),
        }
    }

    /// Markdown's tables with the text before; final text has no columns.
    pub fn all_of(markdown: &str) -> Vec<Self> {
        let mut tables = vec![Self::new("", "")];
        for line in markdown.lines() {
            let cells = line
                .strip_prefix("| ")
                .and_then(|rest| rest.strip_suffix(" |"));
            let Some(last) = tables.last_mut() else { break };
            let cells = cells.map(|cells| cells.split(" | "));
            let is_line = |cells: &std::str::Split<'_, &str>| {
                cells
                    .clone()
                    .all(|cell| cell.trim_matches(['-', ':']).is_empty())
            };
            match cells {
                Some(cells) if last.columns.is_empty() => {
                    last.columns = cells.map(str::to_owned).collect();
                }
                Some(cells) if is_line(&cells) => {}
                Some(cells) => last.rows.push(cells.map(value).collect()),
                None if last.columns.is_empty() => {
                    last.about += line;
                    last.about.push('\n');
                }
                None => tables.push(Self::new(format!("{line}\n"), "")),
            }
        }
        for table in &mut tables {
            table.about = table.about.trim().to_owned();
        }
        tables.retain(|table| !table.about.is_empty() || !table.columns.is_empty());
        tables
    }

    /// Adds a row: `json!([...])`.
    pub fn row(&mut self, cells: Value) {
        self.rows
            .extend(serde_json::from_value::<Vec<Value>>(cells));
    }
}

/// Fractions have four digits.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.about.is_empty() {
            writeln!(f, "{}\n", self.about)?;
        }
        if self.columns.is_empty() {
            return Ok(());
        }
        writeln!(f, "| {} |", self.columns.join(" | "))?;
        writeln!(f, "|{}", " --- |".repeat(self.columns.len()))?;
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(cell).collect();
            writeln!(f, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }
}

fn value(cell: &str) -> Value {
    match serde_json::from_str(cell) {
        Ok(number @ Value::Number(_)) => number,
        _ => Value::String(cell.into()),
    }
}

fn cell(value: &Value) -> String {
    match (value, value.as_f64()) {
        (Value::Null, _) => String::new(),
        (Value::String(text), _) => text.replace('|', "\\|").replace('\n', " "),
        (value, Some(number)) if value.is_f64() && number != 0.0 => {
            let digits = (3.0 - number.abs().log10().floor()).clamp(0.0, 12.0);
            format!("{number:.*}", digits as usize)
        }
        (value, _) => value.to_string(),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../measurements")
}

/// Writes measurements/NAME.json.
///
/// # Errors
/// The file cannot be written.
pub fn keep(name: &str, tables: &[Table]) -> Result<()> {
    let path = folder().join(format!("{name}.json"));
    let temporary = path.with_extension("new");
    let text = serde_json::to_string_pretty(tables).unwrap_or_default() + "\n";
    files::create_dir(folder())?;
    files::write(&temporary, text)?;
    fs::rename(&temporary, &path).map_err(Error::io("write", &path))?;
    println!("kept in measurements/{name}.json");
    Ok(())
}

/// # Errors
/// Nothing kept, or a damaged file.
pub fn kept(name: &str) -> Result<Vec<Table>> {
    files::from_json(folder().join(format!("{name}.json")))
}

/// Names of kept files, and their tables as Markdown.
///
/// # Errors
/// A file cannot be read.
pub fn all() -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for path in files::entries(folder())? {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let tables = kept(&name)?;
        let tables: Vec<String> = tables.iter().map(Table::to_string).collect();
        found.push((name.into_owned(), tables.join("\n")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_from_markdown() {
        let text = "Measured.\n\n| a | b |\n| --- | --: |\n| x, y | 7 |\n| 1.5 | -3 % |\n\nMore.\n";
        let tables = Table::all_of(text);
        assert_eq!(tables.len(), 2, "{tables:?}");
        assert_eq!(tables[0].about, "Measured.");
        assert_eq!(tables[0].columns, ["a", "b"]);
        let rows = serde_json::json!([["x, y", 7], [1.5, "-3 %"]]);
        assert_eq!(serde_json::json!(tables[0].rows), rows);
        assert_eq!(
            (tables[1].about.as_str(), tables[1].columns.len()),
            ("More.", 0)
        );
        assert_eq!(Table::all_of("Text only.").len(), 1);
    }

    #[test]
    fn numbers_and_texts_are_cells() {
        let mut table = Table::new("`x`", "a | b, s | c");
        table.row(serde_json::json!(["p|q", 0.012_345, 7]));
        let text = "`x`\n\n| a | b, s | c |\n| --- | --- | --- |\n| p\\|q | 0.01235 | 7 |\n";
        assert_eq!(table.to_string(), text);
        assert_eq!(cell(&serde_json::json!(1234.56)), "1235");
    }

    #[test]
    fn what_is_committed_can_be_read() {
        assert!(all().expect("measurements").len() >= 8);
    }
}
