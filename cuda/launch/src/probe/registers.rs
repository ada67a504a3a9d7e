// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that a function declares, by scope.

/// A declared register, or a range of them.
struct Register<'a> {
    name: &'a str,
    /// `%r<10>` declares `%r0` to `%r9`.
    is_range: bool,
    bits: u32,
    depth: usize,
}

/// The registers that can be named at a place.
#[derive(Default)]
pub(super) struct Registers<'a> {
    all: Vec<Register<'a>>,
    depth: usize,
}

impl<'a> Registers<'a> {
    pub(super) fn open(&mut self) {
        self.depth += 1;
    }

    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let depth = self.depth;
        self.all.retain(|register| register.depth <= depth);
    }

    /// Takes in a directive, if it declares registers.
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
            self.all.push(Register {
                name,
                is_range,
                bits,
                depth: self.depth,
            });
        }
    }

    /// The bits of a register; none if there is no such one.
    pub(super) fn bits(&self, name: &str) -> Option<u32> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_it = |register: &&Register<'_>| {
            if register.is_range {
                register.name == prefix && prefix.len() < name.len()
            } else {
                register.name == name
            }
        };
        let found = self.all.iter().rev().find(is_it);
        found.map(|register| register.bits)
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
        assert_eq!(registers.bits("a"), Some(64));
        registers.close();
        assert_eq!(registers.bits("a"), Some(32));
        registers.close();
    }
}
