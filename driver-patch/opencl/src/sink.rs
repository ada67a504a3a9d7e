// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where notes go: the recorder, its device, a file of lines.

use core::ffi::{c_char, c_int, c_void};
use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{mem, ptr};

use gpureplay_trace::note::{MAX_TEXT, Note};

const VARIABLE: &str = "GPUREPLAY_NOTES";

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `gpureplay_note` of `libgpureplay_recorder.so`: takes a text and its length and returns 1; without a text it
/// says whether it records.
type Recorder = unsafe extern "C" fn(*const c_char, usize) -> c_int;

fn recorder() -> Option<Recorder> {
    static FOUND: OnceLock<Option<Recorder>> = OnceLock::new();
    let look = || {
        // SAFETY: a C string; null is RTLD_DEFAULT: the libraries that the program started with.
        let address = unsafe { dlsym(ptr::null_mut(), c"gpureplay_note".as_ptr()) };
        if address.is_null() {
            return None;
        }
        // SAFETY: the function of that name has this type.
        let function = unsafe { mem::transmute::<*mut c_void, Recorder>(address) };
        // SAFETY: without a text it only answers.
        (unsafe { function(ptr::null(), 0) } == 1).then_some(function)
    };
    *FOUND.get_or_init(look)
}

static FILE: OnceLock<Option<File>> = OnceLock::new();
static COMPLAINED: AtomicBool = AtomicBool::new(false);

fn file() -> Option<&'static File> {
    let open = || {
        let path = env::var_os(VARIABLE)?;
        // For writing only: opening the device for reading would start a recording.
        match OpenOptions::new().append(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) => {
                complain(&format!("{}: {error}", path.display()));
                None
            }
        }
    };
    // The program may set the variable before it loads its runtime: the library's start asks first.
    if FILE.get().is_none() && env::var_os(VARIABLE).is_none() {
        return None;
    }
    FILE.get_or_init(open).as_ref()
}

pub(crate) fn is_open() -> bool {
    recorder().is_some() || file().is_some()
}

/// Errors are said once on standard error, never to the app.
pub(crate) fn put(note: &Note) {
    let (recorder, file) = (recorder(), file());
    if recorder.is_none() && file.is_none() {
        return;
    }
    let mut text = note.to_string();
    if text.len() > MAX_TEXT
        && let Note::Launch(launch) = note
    {
        let mut short = launch.clone();
        short.arguments.clear();
        text = Note::Launch(short).to_string();
    }
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    if let Some(take) = recorder {
        // SAFETY: the text is as long as stated.
        unsafe { take(text.as_ptr().cast(), text.len()) };
    }
    let Some(mut file) = file else { return };
    // Each write to the device is one record.
    if let Err(error) = file.write_all(format!("note {text}\n").as_bytes()) {
        complain(&error.to_string());
    }
}

fn complain(what: &str) {
    if !COMPLAINED.swap(true, Ordering::Relaxed) {
        eprintln!("gpureplay: no notes of OpenCL calls: {what}");
    }
}
