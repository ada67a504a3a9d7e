// SPDX-License-Identifier: MIT OR Apache-2.0
//! Barriers at the nano driver's register accesses. x86 emulation hides missing ones, so each access is compiled
//! between two marks, and the machine code is read.

use std::process::Stdio;

use crate::{
    build::payload::{self, in_root},
    error::{Error, Result},
    folder::Folder,
};

const LAST_INCLUDE: &str = "#include \"gpureplay_nano.h\"\n";
/// Hints that processors ignore: around a write, around a read.
const MARKS: [&str; 4] = ["hint\t#0x7c", "hint\t#0x7d", "hint\t#0x7e", "hint\t#0x7f"];
/// Writes and reads; with fewer, the marks were not compiled.
const AT_LEAST: (usize, usize) = (10, 5);

fn marks(suffix: &str) -> String {
    // Arguments come before the mark, which may change memory.
    let write = |name: &str, real: &str| {
        format!(
            "#undef {name}\n#define {name}(value, at) do {{ typeof(value) value_ = (value); void __iomem *at_ = (at); \
             asm volatile(\"hint #0x7c\" ::: \"memory\"); ({real})(value_, at_); \
             asm volatile(\"hint #0x7d\" ::: \"memory\"); }} while (0)\n"
        )
    };
    let read = |name: &str, real: &str| {
        format!(
            "#undef {name}\n#define {name}(at) ({{ void __iomem *at_ = (at); typeof(({real})(at_)) value_; \
             asm volatile(\"hint #0x7e\" ::: \"memory\"); value_ = ({real})(at_); \
             asm volatile(\"hint #0x7f\" ::: \"memory\"); value_; }})\n"
        )
    };
    let real = |name: &str| format!("{name}{suffix}");
    [
        LAST_INCLUDE.to_owned(),
        write("writel", &real("writel")),
        write("lo_hi_writeq", &real("lo_hi_writeq")),
        read("readl", &real("readl")),
        read("lo_hi_readq", &real("lo_hi_readq")),
    ]
    .concat()
}

pub(super) fn nano(folder: &Folder) -> Result<()> {
    let right = count(&listing(folder, "")?);
    let relaxed = count(&listing(folder, "_relaxed")?);
    if right.writes < AT_LEAST.0 || right.reads < AT_LEAST.1 || right.without != 0 {
        return Err(format!("the driver: {right:?}").into());
    }
    match relaxed.without == relaxed.writes + relaxed.reads {
        true => Ok(()),
        false => Err(format!("{right:?}, but {relaxed:?} where no access has a barrier").into()),
    }
}

fn listing(folder: &Folder, suffix: &str) -> Result<String> {
    let module = folder.local.join(format!("marked{suffix}.ko"));
    let marked = marks(suffix);
    payload::nano_mutant(folder, "nano.h", &[(LAST_INCLUDE, &marked)], &module)?;
    let mut disassemble = in_root(folder);
    disassemble
        .args(["aarch64-linux-gnu-objdump", "-d"])
        .arg(&module);
    let output = disassemble
        .stdin(Stdio::null())
        .output()
        .map_err(Error::start("in-root"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Accesses {
    writes: usize,
    reads: usize,
    without: usize,
}

/// Between marks only register words are loaded and stored.
fn count(listing: &str) -> Accesses {
    let [write, written, read, been_read] = MARKS;
    let mut found = Accesses::default();
    let (mut inside, mut barrier, mut open) = ("", false, false);
    for line in listing.lines() {
        // Address, code, instruction.
        let Some(instruction) = line.splitn(3, '\t').nth(2) else {
            continue;
        };
        let is_barrier = |kinds: &[&str]| {
            let mut kinds = kinds.iter();
            kinds.any(|kind| instruction.starts_with(&format!("dmb\t{kind}")))
                || instruction.starts_with("dsb")
        };
        if instruction.starts_with(write) || instruction.starts_with(read) {
            inside = if instruction.starts_with(write) {
                write
            } else {
                read
            };
            (barrier, open) = (false, false);
        } else if instruction.starts_with(written) || instruction.starts_with(been_read) {
            found.without += usize::from(open);
            inside = "";
        } else if inside == write && is_barrier(&["oshst", "sy"]) {
            barrier = true;
        } else if inside == write && instruction.starts_with("str\tw") {
            found.writes += 1;
            found.without += usize::from(!barrier);
            barrier = false;
        } else if inside == read && instruction.starts_with("ldr\tw") {
            found.reads += 1;
            found.without += usize::from(open);
            open = true;
        } else if inside == read && is_barrier(&["oshld", "sy"]) {
            open = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(instructions: &[&str]) -> String {
        let line = |text: &&str| format!("    2d90:\td50332bf \t{text}\n");
        instructions.iter().map(line).collect()
    }

    #[test]
    fn barriers_stand_where_they_belong() {
        let [write, written, read, been_read] = MARKS;
        let right = [
            write,
            "dmb\toshst",
            "str\tw1, [x3]",
            "dmb\toshst",
            "str\tw2, [x3]",
            written,
        ];
        let seen = count(&listing(&right));
        assert_eq!((seen.writes, seen.reads, seen.without), (2, 0, 0));
        let seen = count(&listing(&[
            write,
            "dmb\toshst",
            "str\tw1, [x3]",
            "str\tw2, [x3]",
            written,
        ]));
        assert_eq!((seen.writes, seen.without), (2, 1));
        let seen = count(&listing(&[write, "str\tw1, [x3]", "dmb\toshst", written]));
        assert_eq!((seen.writes, seen.without), (1, 1));
        let seen = count(&listing(&[read, "ldr\tw1, [x3]", "dmb\toshld", been_read]));
        assert_eq!((seen.reads, seen.without), (1, 0));
        let seen = count(&listing(&[read, "dmb\toshld", "ldr\tw1, [x3]", been_read]));
        assert_eq!((seen.reads, seen.without), (1, 1));
        assert_eq!(
            count(&listing(&["str\tw1, [x3]", "ldr\tw1, [x3]"])),
            Accesses::default()
        );
    }
}
