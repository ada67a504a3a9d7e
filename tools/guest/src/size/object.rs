// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections, symbols and instructions, from binutils.

use std::path::{Path, PathBuf};

use super::stack::Calls;
use crate::{
    error::{Error, Result},
    firmware::bare,
    folder::Folder,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) text: u64,
    pub(crate) constants: u64,
}

impl Bytes {
    pub(crate) const fn together(self) -> u64 {
        self.text + self.constants
    }

    pub(super) const fn without(self, part: Bytes) -> Bytes {
        Bytes {
            text: self.text.saturating_sub(part.text),
            constants: self.constants.saturating_sub(part.constants),
        }
    }
}

/// Panic handlers call it, and it is defined nowhere: a panic fails the link.
const PANIC: &str = "size_must_not_panic";

pub(crate) struct Object {
    path: PathBuf,
    bytes: Bytes,
    needed: Vec<String>,
    instructions: String,
}

impl Object {
    pub(crate) fn of_archive(folder: &Folder, archive: &Path, prefix: &str) -> Result<Object> {
        let members = binutils(folder, "ar", &["t"], archive)?;
        let member = members
            .lines()
            .find(|name| name.starts_with(prefix))
            .ok_or_else(|| {
                Error::missing(
                    format!("the object {prefix}* in {}", archive.display()),
                    "remove the folder and try again",
                )
            })?;
        let directory = archive.parent().unwrap_or(Path::new("/"));
        let inside = format!("--output={}", directory.display());
        bare::tool(
            folder,
            "aarch64-linux-gnu-ar",
            &["x", &inside, &archive.display().to_string(), member],
        )?;
        Self::of_program(folder, &directory.join(member))
    }

    pub(crate) fn of_program(folder: &Folder, path: &Path) -> Result<Object> {
        let mut bytes = Bytes::default();
        for line in binutils(folder, "size", &["-A"], path)?.lines() {
            let mut words = line.split_whitespace();
            let (Some(name), Some(Ok(size))) = (words.next(), words.next().map(str::parse::<u64>))
            else {
                continue;
            };
            if name.starts_with(".text") {
                bytes.text += size;
            } else if name.starts_with(".rodata") || name.starts_with(".data") {
                bytes.constants += size;
            }
        }
        let needed = binutils(folder, "nm", &["-u"], path)?
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .map(str::to_owned)
            .collect();
        let header = binutils(folder, "readelf", &["-h"], path)?;
        let instructions = if header.contains("AArch64") {
            binutils(folder, "objdump", &["-d", "--no-show-raw-insn"], path)?
        } else {
            String::new()
        };
        Ok(Object {
            path: path.to_path_buf(),
            bytes,
            needed,
            instructions,
        })
    }

    pub(crate) const fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Bytes of the deepest path from the start, and of an interrupt on top.
    pub(crate) fn stack_bound(&self) -> Result<u64> {
        const ENTRIES: [&str; 2] = ["_start", "vectors"];
        let calls = Calls::of_disassembly(&self.instructions);
        let mut sum = 0;
        for entry in ENTRIES {
            sum += calls
                .bound(entry, &ENTRIES)
                .map_err(|why| Error::Contains {
                    path: self.path.clone(),
                    what: format!("a stack without bound: {why}"),
                })?;
        }
        Ok(sum)
    }

    pub(crate) fn require_no_panic(&self) -> Result<()> {
        if self.needed.iter().any(|name| name == PANIC) {
            return Err(Error::Contains {
                path: self.path.clone(),
                what: "a panic".into(),
            });
        }
        Ok(())
    }

    pub(crate) fn require_no_floating_point(&self) -> Result<()> {
        let instruction = self.instructions.lines().find(|line| uses_float(line));
        let routine = self.needed.iter().find(|name| emulates_float(name));
        match instruction.or(routine.map(String::as_str)) {
            None => Ok(()),
            Some(what) => Err(Error::Contains {
                path: self.path.clone(),
                what: format!("floating point: {}", what.trim()),
            }),
        }
    }
}

fn uses_float(line: &str) -> bool {
    let Some((address, instruction)) = line.split_once(":\t") else {
        return false;
    };
    if address.trim().is_empty() || !address.trim().bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return false;
    }
    let operands = instruction.split("//").next().unwrap_or_default();
    // `b8` before a symbol is an address, not a register.
    let operands = match operands.split_once('<') {
        Some((before, _)) => {
            before
                .trim_end()
                .rsplit_once([',', '\t'])
                .unwrap_or_default()
                .0
        }
        None => operands,
    };
    operands
        .split(|c: char| !c.is_ascii_alphanumeric())
        .skip(1)
        .any(|word| {
            let number = word.strip_prefix(['v', 'q', 'd', 's', 'h', 'b']);
            number.is_some_and(|number| number.parse::<u8>().is_ok_and(|number| number < 32))
        })
}

/// Names of Arm IHI 0043 and GCC's soft-float library.
fn emulates_float(symbol: &str) -> bool {
    let arm = symbol.strip_prefix("__aeabi_").is_some_and(|rest| {
        ["f", "d", "cf", "cd"].iter().any(|kind| {
            rest.strip_prefix(kind)
                .is_some_and(|tail| !tail.starts_with("iv") && !tail.is_empty())
        }) || rest.ends_with("2f")
            || rest.ends_with("2d")
    });
    let gcc = symbol.strip_prefix("__").is_some_and(|rest| {
        [
            "sf2", "sf3", "df2", "df3", "sfsi", "sfdi", "dfsi", "dfdi", "sisf", "disf", "sidf",
            "didf",
        ]
        .iter()
        .any(|tail| rest.ends_with(tail))
    });
    arm || gcc
}

fn binutils(folder: &Folder, tool: &str, arguments: &[&str], path: &Path) -> Result<String> {
    let path = path.display().to_string();
    let mut all = arguments.to_vec();
    all.push(&path);
    bare::tool(folder, &format!("aarch64-linux-gnu-{tool}"), &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_is_seen() {
        for line in [
            "   10:\tfadd\ts0, s1, s2",
            "  1a4:\tldr\tq0, [x8]",
            "   20:\tmovi\tv0.2d, #0x0",
            "   24:\tstp\td8, d9, [sp, #-16]!",
        ] {
            assert!(uses_float(line), "{line}");
        }
        for line in [
            "0000000000001000 <d1>:",
            "   10:\tbl\t40 <s1>",
            "   c4:\tcbnz\tx13, b8 <update+0xb8>",
            "   14:\tldr\tx0, [sp, #16]",
            "   18:\tb.hs\t20 <d2+0x4>  // b.nlast",
            "   1c:\tmov\tw9, #0xb1                \t// #177",
        ] {
            assert!(!uses_float(line), "{line}");
        }
    }

    #[test]
    fn emulated_floating_point_is_seen() {
        for symbol in [
            "__aeabi_fadd",
            "__aeabi_dmul",
            "__aeabi_ui2f",
            "__aeabi_cfcmple",
            "__addsf3",
            "__fixdfsi",
        ] {
            assert!(emulates_float(symbol), "{symbol}");
        }
        for symbol in [
            "__aeabi_memcpy",
            "__aeabi_uldivmod",
            "__aeabi_llsr",
            "device_read",
            "__udivdi3",
        ] {
            assert!(!emulates_float(symbol), "{symbol}");
        }
    }
}
