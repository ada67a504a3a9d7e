// SPDX-License-Identifier: MIT OR Apache-2.0
//! The build's commit, and static programs' base address.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=GPUREPLAY_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let stated = std::env::var("GPUREPLAY_COMMIT").ok();
    // Development builds would be linked anew after each commit.
    let released = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = stated.or_else(|| released.then(found).flatten());
    let text = commit.map_or(String::new(), |commit| format!(" ({})", commit.trim()));
    println!("cargo::rustc-env=GPUREPLAY_COMMIT={text}");
    // Otherwise in the low gigabytes, where `--device kbase` needs the recording's addresses.
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let arm = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "aarch64");
    if arm && features.split(',').any(|feature| feature == "crt-static") {
        println!("cargo::rustc-link-arg-bins=-Wl,-Ttext-segment=0x5500000000");
    }
}

/// `+`: files differ; `None` outside of a checkout.
fn found() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // Not the index, which `git status` writes.
    for path in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", path])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(commit + if changed { "+" } else { "" })
}
