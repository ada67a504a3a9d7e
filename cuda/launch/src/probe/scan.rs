// SPDX-License-Identifier: MIT OR Apache-2.0
//! A PTX text as statements.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: What<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What<'a> {
    Open,
    Close,
    /// `name:`
    Label,
    /// `.loc`, without its name.
    Loc(&'a str),
    Directive(&'a str),
    /// With predicate, without `;`.
    Instruction(&'a str),
}

/// Spaces instead: offsets and lines stay.
pub(super) fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (kept, blank) = if rest.starts_with(b"//") {
            (0, rest.iter().position(|byte| *byte == b'\n'))
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
            (0, end.map(|end| end + 4))
        } else if rest.starts_with(b"\"") {
            let end = rest.iter().skip(1).position(|byte| *byte == b'"');
            (end.map_or(rest.len(), |end| end + 2), Some(0))
        } else {
            (1, Some(0))
        };
        let blank = blank.unwrap_or(rest.len());
        for byte in &mut bytes[at..at + blank] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += blank + kept;
    }
    // Only whole comments went: still UTF-8.
    String::from_utf8(bytes).unwrap_or_default()
}

fn after_semicolon(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b';' if !is_quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn label(text: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let name = text.find(|c| !is_name(c)).filter(|end| *end > 0)?;
    let rest = &text[name..];
    let colon = rest.trim_start();
    let is_label = colon.starts_with(':') && !colon.starts_with("::");
    is_label.then(|| name + rest.len() - colon.len() + 1)
}

pub(super) struct Statements<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Statements<'a> {
    pub(super) const fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        let rest = self.text.get(self.at..)?;
        let text = rest.trim_start();
        let start = self.at + rest.len() - text.len();
        let (length, what) = if text.is_empty() {
            return None;
        } else if text.starts_with('{') {
            (1, What::Open)
        } else if text.starts_with('}') {
            (1, What::Close)
        } else if let Some(length) = label(text) {
            (length, What::Label)
        } else if [".loc", ".file"]
            .iter()
            .any(|name| text.starts_with(name) && text[name.len()..].starts_with([' ', '\t']))
        {
            let length = text.find('\n').unwrap_or(text.len());
            match text[..length].strip_prefix(".loc") {
                Some(loc) => (length, What::Loc(loc)),
                None => (length, What::Directive(&text[..length])),
            }
        } else {
            let length = after_semicolon(text)?;
            let body = text[..length - 1].trim_end();
            let what = if text.starts_with('.') {
                What::Directive(body)
            } else {
                What::Instruction(body)
            };
            (length, what)
        };
        self.at = start + length;
        Some(Statement {
            start,
            end: self.at,
            what,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Statements, What, without_comments};

    #[test]
    fn comments_become_spaces_and_strings_stay() {
        let text = "a // x;\n/* {\n */ \"//;\" b /* open";
        let plain = without_comments(text);
        assert_eq!(plain.len(), text.len());
        assert_eq!(plain.trim_end(), "a      \n    \n    \"//;\" b");
    }

    #[test]
    fn statements_are_told_apart() {
        let text = "{ .loc 1 2 3\n$L__BB0_1: @!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1];\n.pragma \"a;b\"; mbarrier.init.shared::cta.b64 [x], 1; }";
        let all: Vec<_> = Statements::new(text, 0).map(|one| one.what).collect();
        assert_eq!(
            all,
            [
                What::Open,
                What::Loc(" 1 2 3"),
                What::Label,
                What::Instruction("@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1]"),
                What::Directive(".pragma \"a;b\""),
                What::Instruction("mbarrier.init.shared::cta.b64 [x], 1"),
                What::Close,
            ]
        );
    }
}
