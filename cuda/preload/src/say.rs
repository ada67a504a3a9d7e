// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the library says on standard error.

use std::io::Write;

/// One line. A closed standard error is no reason to stop a program.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "[gpureplay] {text}");
}
