// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of a PTX text.

use std::collections::BTreeMap;

use super::ProbeError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) is_entry: bool,
    /// Offset of the opening brace.
    pub(super) body: usize,
}

#[derive(Debug)]
pub(super) struct Module<'a> {
    /// One past `.address_size 64`.
    pub(super) head: usize,
    pub(super) functions: Vec<Function<'a>>,
    pub(super) files: BTreeMap<u32, &'a str>,
}

const LINES: [&str; 5] = [".version", ".target", ".address_size", ".file", ".loc"];

pub(super) fn of(text: &str) -> Result<Module<'_>, ProbeError> {
    let mut module = Module {
        head: 0,
        functions: Vec::new(),
        files: BTreeMap::new(),
    };
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        let start = at + rest.len() - trimmed.len();
        if trimmed.is_empty() {
            break;
        }
        if LINES.iter().any(|name| trimmed.starts_with(name)) {
            let length = trimmed.find('\n').unwrap_or(trimmed.len());
            at = start + length;
            one_line(&trimmed[..length], at, &mut module)?;
            continue;
        }
        let Some(end) = trimmed.find([';', '{', '}']) else {
            break;
        };
        let head = &trimmed[..end];
        at = start + end + 1;
        if !trimmed[end..].starts_with('{') {
            continue;
        }
        if let Some(function) = function(head, start + end) {
            module.functions.push(function);
        }
        at = after_block(text, start + end)?;
    }
    if module.head == 0 {
        return Err(ProbeError::AddressSize);
    }
    Ok(module)
}

fn one_line<'a>(line: &'a str, end: usize, module: &mut Module<'a>) -> Result<(), ProbeError> {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some(".version"), Some(version)) => {
            let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
            let version = major.parse().ok().zip(minor.parse().ok());
            if version.is_none_or(|version: (u32, u32)| version < (6, 2)) {
                return Err(ProbeError::TooOld(0));
            }
        }
        (Some(".target"), Some(target)) => {
            let digits = target.trim_start_matches("sm_");
            let digits = digits.trim_end_matches(|c: char| !c.is_ascii_digit());
            let number = digits.split(',').next().unwrap_or_default();
            let number = number.trim_end_matches(|c: char| !c.is_ascii_digit());
            let capability = number.parse().unwrap_or(0);
            if capability < 70 {
                return Err(ProbeError::TooOld(capability));
            }
        }
        (Some(".address_size"), Some("64")) => module.head = end,
        (Some(".file"), Some(number)) => {
            if let (Ok(number), Some(name)) = (number.parse(), line.split('"').nth(1)) {
                module.files.insert(number, name);
            }
        }
        _ => {}
    }
    Ok(())
}

/// `.visible .entry name(…)`, `.func (.param .b32 result) name (…)`.
fn function(head: &str, body: usize) -> Option<Function<'_>> {
    let (is_entry, after) = match (head.split_once(".entry"), head.split_once(".func")) {
        (Some((_, after)), _) => (true, after),
        (None, Some((_, after))) => (false, after),
        (None, None) => return None,
    };
    let mut after = after.trim_start();
    if after.starts_with('(') {
        after = after.split_once(')')?.1.trim_start();
    }
    let end = after.find(|c: char| c.is_whitespace() || matches!(c, '(' | '.'));
    let name = &after[..end.unwrap_or(after.len())];
    (!name.is_empty()).then_some(Function {
        name,
        is_entry,
        body,
    })
}

fn after_block(text: &str, start: usize) -> Result<usize, ProbeError> {
    let mut depth = 0usize;
    let mut is_quoted = false;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'{' if !is_quoted => depth += 1,
            b'}' if !is_quoted => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
    }
    Err(ProbeError::Unended)
}

#[cfg(test)]
mod tests {
    use super::{ProbeError, of};

    const HEAD: &str = ".version 8.0\n.target sm_90a, debug\n.address_size 64\n";

    #[test]
    fn functions_and_files_are_found() {
        let text = format!(
            "{HEAD}.file 2 \"a b.cu\"\n.global .align 4 .b8 t[2] = {{1, 2}};\n.extern .func f(.param .b32 x);\n\
             .func (.param .b32 r) g (.param .b32 x) {{ ret; }}\n.visible .entry k(.param .u64 p) .maxntid 32, 1, 1 {{ {{ }} ret; }}\n\
             .section .debug {{ .b8 1 }}"
        );
        let module = of(&text).unwrap();
        let found: Vec<_> = module
            .functions
            .iter()
            .map(|one| (one.name, one.is_entry, &text[one.body..=one.body]))
            .collect();
        assert_eq!(found, [("g", false, "{"), ("k", true, "{")]);
        assert_eq!(module.files[&2], "a b.cu");
        assert!(text[..module.head].ends_with("64"));
    }

    #[test]
    fn what_has_no_room_for_probes_is_refused() {
        let refused = |text: &str| of(text).unwrap_err();
        assert_eq!(refused(""), ProbeError::AddressSize);
        assert_eq!(
            refused(&HEAD.replace("sm_90a", "sm_60")),
            ProbeError::TooOld(60)
        );
        assert_eq!(refused(&HEAD.replace("8.0", "6.1")), ProbeError::TooOld(0));
        assert_eq!(refused(&HEAD.replace("64", "32")), ProbeError::AddressSize);
        assert_eq!(
            refused(&format!("{HEAD}.entry k() {{ ret;")),
            ProbeError::Unended
        );
    }
}
