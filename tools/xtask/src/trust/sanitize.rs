// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask sanitize`: unsafe crates' tests under AddressSanitizer.

use std::process::{Command, ExitCode};

use clap::Args;

use super::root;
use crate::error::{Error, Result};

/// With unsafe code, and two that use most of it.
const CRATES: [&str; 8] = [
    "gpureplay-memory",
    "gpureplay-shader",
    "mali-shader",
    "gpureplay-c",
    "gpureplay-linux",
    "gpureplay-on-model",
    "gpureplay-opencl",
    "gpureplay-recorder",
];

/// Run the tests of the crates with unsafe code under AddressSanitizer
///
/// A stable toolchain will do. Miri cannot run these tests: they map and share memory and choose vector instructions.
#[derive(Args)]
pub(crate) struct Sanitize {}

/// A library loaded as the CUDA driver wants the sanitizer's functions, which programs do not export.
const SKIPPED: &str = "a_run_binds_runs_and_reads_as_other_recordings";

impl Sanitize {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let target = host()?;
        let mut command = Command::new("cargo");
        command
            .current_dir(root())
            .args(["test", "--tests", "--no-fail-fast", "--target", &target])
            .args(CRATES.iter().flat_map(|name| ["--package", name]))
            .args(["--", "--skip", SKIPPED])
            .env("CARGO_TARGET_DIR", root().join("target/sanitize"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("ASAN_OPTIONS", "detect_stack_use_after_return=1");
        let output = command.output().map_err(Error::start("cargo"))?;
        let log = String::from_utf8_lossy(&output.stdout);
        let passed: u64 = log
            .lines()
            .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next())
            .filter_map(|count| count.parse::<u64>().ok())
            .sum();
        let errors = String::from_utf8_lossy(&output.stderr);
        let findings = errors.matches("ERROR: AddressSanitizer").count();
        if !output.status.success() {
            for text in [&log, &errors] {
                let from = text.len().saturating_sub(6000);
                eprintln!("{}", text.get(from..).unwrap_or(text));
            }
        }
        println!(
            "sanitize: {passed} tests of {} crates passed under AddressSanitizer, {findings} findings",
            CRATES.len()
        );
        let all = output.status.success() && passed > 0;
        Ok(ExitCode::from(u8::from(!all)))
    }
}

pub(super) fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(Error::start("cargo"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| {
        Error::missing(
            "the name of this machine's target",
            "see what `rustc -vV` says",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const LEFT_OUT: [(&str, &str); 6] = [
        (
            "gpureplay-cuda-launch",
            "nothing of it runs without a driver",
        ),
        (
            "gpureplay-cuda-fake",
            "it is loaded into programs that have no sanitizer",
        ),
        (
            "gpureplay-cuda-preload",
            "it takes the place of dlsym, as the sanitizer does",
        ),
        (
            "gpureplay-cuda-replay",
            "it puts memory at chosen addresses, where the sanitizer keeps its own",
        ),
        (
            "gpureplay-node",
            "it takes the place of open, mmap and close, as the sanitizer does",
        ),
        (
            "xtask",
            "its only unsafe code is compiled into crates that it changes",
        ),
    ];

    fn has_unsafe_code(folder: &Path) -> bool {
        fs::read_dir(folder).unwrap().any(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                return has_unsafe_code(&path);
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let mut lines = text.lines().map(str::trim_start);
            lines.any(|line| !line.starts_with("//") && line.contains(concat!("unsafe", " {")))
        })
    }

    #[test]
    fn every_member_with_unsafe_code_is_tested() {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let members = manifest.split("members = [").nth(1).unwrap();
        let members = members.split(']').next().unwrap();
        let mut found = 0;
        for member in members.split('"').skip(1).step_by(2) {
            let folder = root().join(member);
            if !has_unsafe_code(&folder.join("src")) {
                continue;
            }
            let package = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            let mut names = CRATES.into_iter().chain(LEFT_OUT.map(|(name, _)| name));
            let tested = names.any(|name| package.contains(&format!("name = \"{name}\"")));
            assert!(tested, "{member} has unsafe code");
            found += 1;
        }
        assert!(found >= 5);
    }
}
