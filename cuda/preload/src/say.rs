// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines on standard error.

use std::io::Write;

/// A closed standard error must not stop the program.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "[gpureplay] {text}");
}
