// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program's texts: literals, and clap's documentation.

const TESTS: &str = "#[cfg(test)]\nmod ";

pub(super) fn said(source: &str) -> Vec<(usize, String)> {
    let source = &source[..source.find(TESTS).unwrap_or(source.len())];
    let mut found = literals(source);
    if source.contains("clap::") {
        found.extend(documentation(source));
    }
    found
}

fn documentation(source: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in source.lines().enumerate() {
        let text = line.trim_start().strip_prefix("///").unwrap_or_default();
        let text = text.trim();
        match (open, found.last_mut()) {
            _ if text.is_empty() => {}
            (true, Some((_, paragraph))) => *paragraph += &format!(" {text}"),
            _ => found.push((number + 1, text.to_owned())),
        }
        open = !text.is_empty();
    }
    found
}

/// A text per line; a final backslash continues it.
fn literals(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("'\\") {
            3 + rest[3..].find('\'').unwrap_or(0)
        } else if rest.starts_with("'\"'") {
            3
        } else if let Some(end) = raw(rest) {
            end
        } else if let Some(literal) = rest.strip_prefix('"') {
            let end = closed(literal);
            let line = source[..at].matches('\n').count() + 1;
            let texts = unescaped(&literal[..end]);
            found.extend(texts.into_iter().map(|text| (line, text)));
            end + 2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += skipped;
    }
    found
}

/// A raw string's length. Here these are patterns and data, not texts.
fn raw(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('r')?;
    let hashes = inside.len() - inside.trim_start_matches('#').len();
    let text = inside[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest.len() - text.len() + text.find(&end)? + end.len())
}

fn closed(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|letter| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len().saturating_sub(1))
}

fn unescaped(literal: &str) -> Vec<String> {
    let mut lines = literal.split("\\\n");
    let mut joined = lines.next().unwrap_or_default().to_owned();
    for continued in lines {
        joined += continued.trim_start();
    }
    let text = joined.replace("\\n", "\n").replace("\\\"", "\"");
    let lines = text.lines().map(|line| line.trim().to_owned());
    lines.filter(|line| line.contains(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn literals_and_help_are_found() {
        let source = r##"
// "not a literal"
/// Says what is here,
/// in two lines.
///
/// Second paragraph.
use clap::Args;
const A: &str = "one \"quoted\" text\nand \
                 another";
const B: [char; 3] = ['"', '\'', '\n'];
const C: &str = r#"raw "and" data"#;
const D: &str = "last one";
"##;
        let tests = "#[cfg(test)]\nmod tests { const T: &str = \"only a test\"; }";
        let found = said(&(source.to_owned() + tests));
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "one \"quoted\" text",
                "and another",
                "last one",
                "Says what is here, in two lines.",
                "Second paragraph.",
            ]
        );
        assert_eq!(found[2].0, 12);
    }
}
