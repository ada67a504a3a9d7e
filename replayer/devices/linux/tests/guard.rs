// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nano driver's guard, against the verifier.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn guard(arguments: &[&str]) -> String {
    let name = format!("gpureplay-guard-{}-{}", std::process::id(), arguments.len());
    let scratch = Scratch(std::env::temp_dir().join(name));
    // The test defines all that kernel headers would.
    fs::create_dir_all(scratch.0.join("linux")).unwrap();
    for header in ["bits.h", "kernel.h"] {
        fs::write(scratch.0.join("linux").join(header), "").unwrap();
    }
    let program = scratch.0.join("guard");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../nano-driver/tests/guard.c");
    let compiled = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(&scratch.0)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .status()
        .unwrap();
    assert!(compiled.success());
    let ran = Command::new(&program).args(arguments).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}");
    said
}

#[test]
fn the_guard_admits_what_it_should_and_nothing_else() {
    let said = guard(&[]);
    assert!(said.starts_with("TAP version 13\n"), "{said}");
    let checks = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(
        checks > 0 && said.ends_with(&format!("\n1..{checks}\n")),
        "{said}"
    );
}

#[test]
fn the_guard_and_the_verifier_agree_on_settings() {
    let said = guard(&["settings"]);
    let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut set = 0;
    for line in said.lines() {
        let mut words = line.split(' ').map(number);
        let mut next = || words.next().unwrap();
        let (product, register, bits) = (next(), next(), next());
        let gpu_id = product << 16 | 0x0210_1005;
        for bit in 0..32 {
            let ours = mali_drive::writable(gpu_id, register, 1 << bit);
            assert_eq!(
                bits >> bit & 1 != 0,
                ours,
                "{product:#x} {register:#x} bit {bit}"
            );
            set += u32::from(ours);
        }
    }
    assert_eq!(said.lines().count(), 68);
    assert!(set > 0);
}
