// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines on standard error, and tables for the command.

use std::io::Write;
use std::path::Path;

/// A closed standard error must not stop the program.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "[gpureplay] {text}");
}

pub(crate) fn tell(folder: &Path, text: &str) {
    let path = folder.join(format!("{}.tsv", std::process::id()));
    if let Err(error) = std::fs::write(&path, text) {
        say(&format!("{}: {error}", path.display()));
    }
}
