// SPDX-License-Identifier: MIT OR Apache-2.0
//! `#define`s of C sources.

use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug)]
struct Macro {
    parameter: Option<String>,
    text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Macros(BTreeMap<String, Macro>);

impl Macros {
    /// `folder` is relative to the repository.
    pub(crate) fn of_folder(folder: &str) -> Macros {
        let mut macros = Macros::default();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for entry in std::fs::read_dir(root.join(folder)).expect(folder) {
            let path = entry.expect(folder).path();
            if path
                .extension()
                .is_some_and(|extension| extension == "c" || extension == "h")
            {
                macros.add(&std::fs::read_to_string(path).expect(folder));
            }
        }
        macros
    }

    fn add(&mut self, source: &str) {
        for line in source.lines() {
            let Some(definition) = line.strip_prefix("#define ") else {
                continue;
            };
            let definition = definition.split("/*").next().unwrap_or_default().trim();
            let end = definition.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            let (name, rest) = definition.split_at(end.unwrap_or(definition.len()));
            // A parameter follows the name without a blank.
            let (parameter, text) =
                match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
                    Some((parameter, text)) => (Some(parameter.to_owned()), text),
                    None => (None, rest),
                };
            let text = text.trim().to_owned();
            if !text.is_empty() {
                self.0.insert(name.to_owned(), Macro { parameter, text });
            }
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// `None`: missing, or no number.
    pub(crate) fn value(&self, name: &str) -> Option<u64> {
        let found = self.0.get(name).filter(|found| found.parameter.is_none())?;
        self.evaluate(&found.text, None)
    }

    pub(crate) fn call(&self, name: &str, argument: u64) -> Option<u64> {
        let found = self.0.get(name)?;
        self.evaluate(&found.text, Some((found.parameter.as_deref()?, argument)))
    }

    fn evaluate(&self, text: &str, argument: Option<(&str, u64)>) -> Option<u64> {
        let mut parser = Parser {
            macros: self,
            argument,
            rest: text,
        };
        let value = parser.expression(0)?;
        parser.rest.trim().is_empty().then_some(value)
    }
}

struct Parser<'a> {
    macros: &'a Macros,
    argument: Option<(&'a str, u64)>,
    rest: &'a str,
}

/// Loosest binding first.
const OPERATORS: &[&[&str]] = &[&["|"], &["&"], &["<<", ">>"], &["+", "-"], &["*"]];

impl<'a> Parser<'a> {
    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expression(&mut self, level: usize) -> Option<u64> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.operand();
        };
        let mut left = self.expression(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.take(operator)) {
            let right = self.expression(level + 1)?;
            left = match *operator {
                "|" => left | right,
                "&" => left & right,
                "<<" => left << right,
                ">>" => left >> right,
                "+" => left + right,
                "-" => left - right,
                _ => left * right,
            };
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<u64> {
        if self.take("(") {
            let value = self.expression(0)?;
            return self.take(")").then_some(value);
        }
        let text = self.rest.trim_start();
        let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = word.trim_end_matches(['U', 'L']);
            return match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            };
        }
        match (word, self.argument) {
            ("BIT" | "BIT_ULL", _) => Some(1 << self.operand()?),
            ("GENMASK_ULL", _) if self.take("(") => {
                let high = self.expression(0)?;
                let low = self.take(",").then(|| self.expression(0))??;
                let bits = self.take(")").then_some(high - low + 1)?;
                Some(u64::MAX >> (64 - bits) << low)
            }
            (word, Some((parameter, value))) if word == parameter => Some(value),
            (word, _) if self.macros.0.get(word)?.parameter.is_some() => {
                let value = self.operand()?;
                self.macros.call(word, value)
            }
            (word, _) => self.macros.value(word),
        }
    }
}

#[test]
fn macros_have_their_values() {
    let mut macros = Macros::default();
    macros.add(
        "#define GUARD_H\n#define BASE\t0x1800U\t/* a */\n#define SLOT(n) (BASE + 0x80 * (n))\n\
         #define END SLOT(2)\n#define BITS (BIT(3) | 0x10001U << 1)\n#define MASK GENMASK_ULL(47, 12)\n\
         #define FIELD(x) (((x) >> 6) & 0x1f)\n#define NONE something(1)\n",
    );
    assert_eq!(macros.value("END"), Some(0x1900));
    assert_eq!(macros.call("SLOT", 1), Some(0x1880));
    assert_eq!(macros.value("BITS"), Some(0x2000a));
    assert_eq!(macros.value("MASK"), Some(0xffff_ffff_f000));
    assert_eq!(macros.call("FIELD", 0x7c0), Some(0x1f));
    assert_eq!(
        (macros.value("NONE"), macros.value("GUARD_H")),
        (None, None)
    );
    assert_eq!(macros.names().count(), 7);
}
