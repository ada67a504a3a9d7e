// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declared registers, by scope.

use std::collections::HashMap;

/// Name, and whether a range (`%r<10>`: `%r0` to `%r9`).
type Declared<'a> = (&'a str, bool);

#[derive(Default)]
pub(super) struct Registers<'a> {
    /// A growing number and bits; the last declaration counts.
    all: HashMap<Declared<'a>, Vec<(usize, u32)>>,
    scopes: Vec<Vec<Declared<'a>>>,
    count: usize,
}

impl<'a> Registers<'a> {
    pub(super) fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn close(&mut self) {
        for declared in self.scopes.pop().unwrap_or_default() {
            if let Some(all) = self.all.get_mut(&declared) {
                all.pop();
            }
        }
    }

    pub(super) fn declare(&mut self, directive: &'a str) {
        let Some(rest) = directive.strip_prefix(".reg") else {
            return;
        };
        let mut bits = 0;
        for (number, part) in rest.split(',').enumerate() {
            let mut words = part.split_whitespace();
            let mut name = words.next_back().unwrap_or_default();
            if number == 0 {
                // `.v2` stands before the type.
                let kind = words.rfind(|word| word.starts_with('.'));
                let digits = kind.and_then(|kind| {
                    let digits = kind.trim_start_matches(|c: char| !c.is_ascii_digit());
                    digits.parse().ok()
                });
                bits = digits.unwrap_or(0);
            }
            let is_range = name.ends_with('>');
            if let Some((prefix, _)) = name.split_once('<') {
                name = prefix;
            }
            self.count += 1;
            let declared = (name, is_range);
            self.all
                .entry(declared)
                .or_default()
                .push((self.count, bits));
            if let Some(scope) = self.scopes.last_mut() {
                scope.push(declared);
            }
        }
    }

    pub(super) fn bits(&self, name: &str) -> Option<u32> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let range = (prefix.len() < name.len()).then_some((prefix, true));
        let both = [Some((name, false)), range].into_iter().flatten();
        let found = both.filter_map(|declared| self.all.get(&declared)?.last());
        found.max().map(|(_, bits)| *bits)
    }
}

#[cfg(test)]
mod tests {
    use super::Registers;

    #[test]
    fn registers_have_scopes() {
        let mut registers = Registers::default();
        registers.declare(".reg .b64 %rd<9>");
        registers.declare(".reg .b32 a, b2");
        assert_eq!(registers.bits("%rd8"), Some(64));
        assert_eq!(registers.bits("%rd"), None);
        assert_eq!(registers.bits("b2"), Some(32));
        assert_eq!(registers.bits("b"), None);
        registers.open();
        registers.declare(".reg .u64 a");
        registers.declare(".reg .b16 %rd8");
        assert_eq!(registers.bits("a"), Some(64));
        assert_eq!(registers.bits("%rd8"), Some(16));
        assert_eq!(registers.bits("%rd7"), Some(64));
        registers.close();
        assert_eq!(registers.bits("a"), Some(32));
        assert_eq!(registers.bits("%rd8"), Some(64));
        registers.close();
    }
}
