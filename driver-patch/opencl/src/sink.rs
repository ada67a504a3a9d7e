// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where notes go: the recorder's device, or any file that takes lines.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use gpureplay_trace::note::{MAX_TEXT, Note};

/// Environment variable that names the file.
const VARIABLE: &str = "GPUREPLAY_NOTES";

static FILE: OnceLock<Option<File>> = OnceLock::new();
static COMPLAINED: AtomicBool = AtomicBool::new(false);

fn file() -> Option<&'static File> {
    let open = || {
        let path = env::var_os(VARIABLE)?;
        // Opened for writing only: opening the device for reading would start a recording.
        match OpenOptions::new().append(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) => {
                complain(&format!("{}: {error}", path.display()));
                None
            }
        }
    };
    // A program that names the file later, before it loads its runtime, is heard as well: the library's start asks first.
    if FILE.get().is_none() && env::var_os(VARIABLE).is_none() {
        return None;
    }
    FILE.get_or_init(open).as_ref()
}

/// Whether anybody wants notes.
pub(crate) fn is_open() -> bool {
    file().is_some()
}

/// Writes a note. What goes wrong is said once on the standard error output, and is not the app's affair.
pub(crate) fn put(note: &Note) {
    let Some(mut file) = file() else { return };
    let mut text = note.to_string();
    if text.len() > MAX_TEXT
        && let Note::Launch(launch) = note
    {
        // The name and the sizes matter more than the arguments.
        let mut short = launch.clone();
        short.arguments.clear();
        text = Note::Launch(short).to_string();
    }
    text.truncate(MAX_TEXT);
    // One call: each write to the device is one record.
    if let Err(error) = file.write_all(format!("note {text}\n").as_bytes()) {
        complain(&error.to_string());
    }
}

fn complain(what: &str) {
    if !COMPLAINED.swap(true, Ordering::Relaxed) {
        eprintln!("gpureplay: no notes of OpenCL calls: {what}");
    }
}
