// SPDX-License-Identifier: MIT OR Apache-2.0
//! Largest stack, by a disassembly's calls.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
struct Function<'a> {
    /// Bytes; the most over all paths.
    frame: u64,
    calls: BTreeSet<&'a str>,
    indirect: bool,
}

#[derive(Debug)]
pub(crate) struct Calls<'a>(BTreeMap<&'a str, Function<'a>>);

impl<'a> Calls<'a> {
    /// From `aarch64-linux-gnu-objdump -d --no-show-raw-insn`.
    pub(crate) fn of_disassembly(text: &'a str) -> Self {
        let mut functions: BTreeMap<&str, Function<'_>> = BTreeMap::new();
        let mut current = "";
        for line in text.lines() {
            if let Some(name) = line
                .strip_suffix(">:")
                .and_then(|head| head.split_once(" <"))
            {
                current = name.1;
                functions.entry(current).or_default();
                continue;
            }
            let mut fields = line.split('\t').skip(1);
            let (Some(mnemonic), operands) = (fields.next(), fields.next().unwrap_or_default())
            else {
                continue;
            };
            let Some(function) = functions.get_mut(current) else {
                continue;
            };
            function.frame += lowered(mnemonic, operands);
            match mnemonic.trim() {
                "blr" | "br" => function.indirect = true,
                "bl" | "b" | "cbz" | "cbnz" | "tbz" | "tbnz" => {
                    function.calls.extend(target(operands, current));
                }
                conditional if conditional.starts_with("b.") => {
                    function.calls.extend(target(operands, current));
                }
                _ => {}
            }
        }
        Self(functions)
    }

    /// Bytes; an indirect call may reach any function outside `entries` that is never called by name.
    ///
    /// # Errors
    /// Calls in a circle, or a missing function.
    pub(crate) fn bound(&self, root: &str, entries: &[&str]) -> Result<u64, String> {
        let called: BTreeSet<&str> = self
            .0
            .values()
            .flat_map(|function| function.calls.iter().copied())
            .collect();
        let indirect: Vec<&str> = self
            .0
            .keys()
            .copied()
            .filter(|name| !called.contains(name) && !entries.contains(name))
            .collect();
        self.depth(root, &indirect, &mut Vec::new())
    }

    fn depth<'s>(
        &'s self,
        name: &'s str,
        indirect: &[&'s str],
        path: &mut Vec<&'s str>,
    ) -> Result<u64, String> {
        if path.contains(&name) {
            return Err(format!("{} calls itself through {}", name, path.join(", ")));
        }
        let function = self
            .0
            .get(name)
            .ok_or_else(|| format!("there is no function {name}"))?;
        path.push(name);
        let mut deepest = 0;
        let indirect_calls = indirect.iter().filter(|_| function.indirect);
        for &callee in function.calls.iter().chain(indirect_calls) {
            deepest = deepest.max(self.depth(callee, indirect, path)?);
        }
        path.pop();
        Ok(function.frame + deepest)
    }
}

/// Bytes by which an instruction lowers the stack pointer.
fn lowered(mnemonic: &str, operands: &str) -> u64 {
    let operands = operands.split("//").next().unwrap_or_default().trim();
    if mnemonic == "sub"
        && let Some(rest) = operands.strip_prefix("sp, sp, #")
    {
        let (number, shift) = match rest.split_once(", lsl #") {
            Some((number, shift)) => (number, shift.parse().unwrap_or(0)),
            None => (rest, 0u32),
        };
        let number = number.strip_prefix("0x").unwrap_or(number);
        return u64::from_str_radix(number, 16).unwrap_or(0) << shift;
    }
    let before = operands.split_once("[sp, #-");
    let number = before.and_then(|(_, rest)| rest.strip_suffix("]!"));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn target<'a>(operands: &'a str, current: &str) -> Option<&'a str> {
    let (_, rest) = operands.split_once('<')?;
    let name = rest.split(['+', '>']).next()?;
    (name != current).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "\
0000000000000000 <start>:
   0:\tbl\t10 <main>
   4:\tb\t4 <start+0x4>
0000000000000010 <main>:
  10:\tstp\tx29, x30, [sp, #-32]!
  14:\tsub\tsp, sp, #0x1, lsl #12
  18:\tcbz\tx0, 20 <main+0x10>
  1c:\tblr\tx8
  20:\tb\t30 <leaf>
0000000000000030 <leaf>:
  30:\tsub\tsp, sp, #0x20
0000000000000040 <pointed_at>:
  40:\tsub\tsp, sp, #0x30                   \t// #48
0000000000000050 <again>:
  50:\tstr\tx30, [sp, #-16]!
  54:\tbl\t60 <and_again>
0000000000000060 <and_again>:
  60:\tb.eq\t50 <again>  // b.none
";

    #[test]
    fn deepest_path_counts() {
        let calls = Calls::of_disassembly(PROGRAM);
        assert_eq!(calls.bound("leaf", &["start"]), Ok(32));
        assert_eq!(calls.bound("start", &["start"]), Ok(32 + 4096 + 48));
        assert_eq!(
            calls.bound("start", &["start", "pointed_at"]),
            Ok(32 + 4096 + 32)
        );
    }

    #[test]
    fn circles_have_no_bound() {
        let calls = Calls::of_disassembly(PROGRAM);
        assert!(calls.bound("again", &["start"]).is_err());
        assert!(calls.bound("nowhere", &["start"]).is_err());
    }
}
