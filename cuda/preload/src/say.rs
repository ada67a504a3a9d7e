// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines on standard error.

use std::io::Write;

/// Even if it is closed.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "[gpureplay] {text}");
}
