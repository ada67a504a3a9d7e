// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counted checks.

use std::process::ExitCode;

use super::error::Result;

/// How a check ended.
pub enum End {
    /// What it did.
    Passed(String),
    /// What is missing.
    Skipped(String),
}

/// Passed, failed and skipped checks.
#[derive(Default)]
pub struct Counts {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Counts {
    /// Prints and counts a check.
    pub fn add(&mut self, name: &str, end: Result<End>) {
        match end {
            Ok(End::Passed(text)) => {
                self.passed += 1;
                println!("ok   {name}: {text}");
            }
            Ok(End::Skipped(text)) => {
                self.skipped += 1;
                println!("skip {name}: {text}");
            }
            Err(error) => {
                self.failed += 1;
                println!("FAIL {name}: {error}");
            }
        }
    }

    /// Prints the last line; returns the exit code.
    pub fn finish(self) -> ExitCode {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        ExitCode::from(u8::from(failed > 0))
    }
}
