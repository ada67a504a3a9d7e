// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comma-separated values (RFC 4180).

/// Line of cells with its end.
#[must_use]
pub fn line<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<String> = cells
        .into_iter()
        .map(|value| cell(value.as_ref()))
        .collect();
    cells.join(",") + "\n"
}

/// An apostrophe precedes what a spreadsheet would take for a formula.
fn cell(value: &str) -> String {
    let formula = value.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let number = value.parse::<f64>().is_ok();
    let value = match formula && !number {
        true => format!("'{value}"),
        false => value.to_owned(),
    };
    match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_values_and_never_formulas() {
        for (value, expected) in [
            ("a", "a"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+2", "'=1+2"),
            ("-1.5", "-1.5"),
            ("@x", "'@x"),
        ] {
            assert_eq!(cell(value), expected);
        }
        assert_eq!(line(["a", "b c", "1,2"]), "a,b c,\"1,2\"\n");
    }
}
