// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows sizes: as text, as JSON, and as the table in docs/performance.md.

use std::fmt::Write;

use super::measure::{Row, Sizes};
use crate::error::{Error, Result};

/// Lines around the table in the document.
const START: &str = "<!-- cargo xtask size --write -->\n";
const END: &str = "<!-- end of cargo xtask size -->\n";

/// For the terminal.
pub(crate) fn text(sizes: &Sizes) -> String {
    let mut out = format!("{:>8} {:>10} {:>9}\n", "code", "constants", "together");
    for row in &sizes.rows {
        let _ = writeln!(
            out,
            "{:>8} {:>10} {:>9}  {}{}",
            row.bytes.text,
            row.bytes.constants,
            row.bytes.together(),
            row.name,
            goal(row)
        );
    }
    let _ = writeln!(out, "stack of the image: at most {} bytes", sizes.stack);
    out
}

fn goal(row: &Row) -> String {
    match row.goal {
        None => String::new(),
        Some(goal) if row.bytes.together() <= goal => format!(" (goal {}: met)", thousands(goal)),
        Some(goal) => format!(
            " (goal {}: {} above)",
            thousands(goal),
            thousands(row.bytes.together() - goal)
        ),
    }
}

/// For programs.
pub(crate) fn json(sizes: &Sizes) -> String {
    let rows: Vec<String> = sizes
        .rows
        .iter()
        .map(|row| {
            let goal = row.goal.map_or("null".into(), |goal| goal.to_string());
            format!(
                "\"{}\":{{\"text\":{},\"read_only_data\":{},\"together\":{},\"goal\":{goal}}}",
                row.key,
                row.bytes.text,
                row.bytes.constants,
                row.bytes.together()
            )
        })
        .collect();
    format!("{{{},\"stack\":{}}}", rows.join(","), sizes.stack)
}

/// The document with the table in it.
pub(crate) fn replace(document: &str, sizes: &Sizes) -> Result<String> {
    let missing = || Error::Missing {
        what: format!("the line `{}` in docs/performance.md", START.trim()),
        remedy: format!("put it and `{}` where the table belongs", END.trim()),
    };
    let (before, rest) = document.split_once(START).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let mut table =
        String::from("| Part | Code | Constants | Together |\n| --- | --- | --- | --- |\n");
    for row in &sizes.rows {
        let _ = writeln!(
            table,
            "| {}{} | {} | {} | {} |",
            row.name,
            goal(row),
            thousands(row.bytes.text),
            thousands(row.bytes.constants),
            thousands(row.bytes.together())
        );
    }
    let _ = writeln!(
        table,
        "\nThe image uses at most {} bytes of stack, by the calls in its code, an interrupt included.",
        thousands(sizes.stack)
    );
    Ok(format!("{before}{START}{table}{END}{after}"))
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::object::Bytes;
    use super::*;

    fn sizes(text: u64) -> Sizes {
        let bytes = Bytes { text, constants: 5 };
        let row = Row {
            key: "engine",
            name: "engine",
            bytes,
            goal: Some(1_200),
        };
        Sizes {
            rows: vec![row],
            stack: 9_000,
        }
    }

    #[test]
    fn table_is_replaced_and_nothing_else() {
        let document = format!("a\n{START}old\n{END}b\n");
        let first = replace(&document, &sizes(1_234)).expect("replaces");
        assert!(
            first.starts_with("a\n") && first.ends_with("b\n"),
            "{first}"
        );
        assert!(
            first.contains("| engine (goal 1,200: 39 above) | 1,234 | 5 | 1,239 |"),
            "{first}"
        );
        assert_eq!(replace(&first, &sizes(1_234)).expect("replaces"), first);
        assert_ne!(replace(&first, &sizes(1_000)).expect("replaces"), first);
        assert!(replace("no table", &sizes(1)).is_err());
    }

    #[test]
    fn json_names_every_number() {
        assert_eq!(
            json(&sizes(1)),
            r#"{"engine":{"text":1,"read_only_data":5,"together":6,"goal":1200},"stack":9000}"#
        );
    }
}
