// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface with bad callers, and its header. `cargo xtask examples` runs it from C and Python.
#![allow(clippy::unwrap_used)]

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use gpureplay::*;

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn digits() -> PathBuf {
    here().join("../../recordings/digits-g52")
}

#[test]
fn the_header_is_what_cbindgen_makes() {
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in ["guard", "recording", "session", "types"] {
        builder = builder.with_src(here().join(format!("src/{file}.rs")));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = here().join("include/gpureplay.h");
    if std::env::var_os("GPUREPLAY_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "include/gpureplay.h is out of date; GPUREPLAY_WRITE_HEADER=1 cargo test -p gpureplay-c --test boundary writes it"
    );
}

#[test]
fn the_header_names_all_kinds_of_devices() {
    let header = std::fs::read_to_string(here().join("include/gpureplay.h")).unwrap();
    let comment = header
        .lines()
        .find(|line| line.contains("\"model\""))
        .unwrap();
    let quoted: Vec<&str> = comment.split('"').skip(1).step_by(2).collect();
    let kinds: Vec<&str> = gpureplay_library::device::KINDS
        .iter()
        .map(|kind| kind.text)
        .collect();
    assert_eq!(quoted, kinds);
}

fn last_error() -> String {
    let text = gpureplay_last_error();
    // SAFETY: the function returns a string that is valid until this thread's next failure.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

#[track_caller]
fn failed_as(text: &str) {
    assert!(last_error().contains(text), "{}", last_error());
}

#[track_caller]
fn well(status: Status) {
    assert_eq!(status, Status::Ok, "{}", last_error());
}

fn text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

#[test]
fn bad_callers_get_errors() {
    let path = text(&digits());
    let (mut recording, mut session) = (null_mut(), null_mut());
    let f32s = ElementType::F32 as u32;
    // SAFETY: every pointer is null or comes from the function that makes it.
    unsafe {
        assert_eq!(gpureplay_open(null(), &raw mut recording), Status::Usage);
        failed_as("path is a null pointer");
        assert_eq!(gpureplay_open(path.as_ptr(), null_mut()), Status::Usage);
        for (path, status) in [(c"\xff", Status::Usage), (c"/none", Status::Recording)] {
            let opened = gpureplay_open(path.as_ptr(), &raw mut recording);
            assert_eq!(opened, status, "{path:?}");
        }
        failed_as("/none");
        assert!(recording.is_null());
        well(gpureplay_open(path.as_ptr(), &raw mut recording));
        assert_eq!(gpureplay_tensor_count(recording), 16);
        assert_eq!(gpureplay_tensor_count(null()), 0);
        assert_eq!(gpureplay_layer_count(recording), 7);
        assert!(gpureplay_layer_name(recording, 7).is_null());
        assert_eq!(CStr::from_ptr(gpureplay_layer_name(recording, 2)), c"pool1");
        assert_eq!(gpureplay_tensor(recording, 99, null_mut()), Status::Usage);
        let options = |device: &'static CStr| SessionOptions {
            device: device.as_ptr(),
            threads: 1,
            verbose: 0,
            retries: 0,
            any_gpu: 0,
        };
        let open = |options: *const SessionOptions, session| {
            gpureplay_session_open(recording, options, session)
        };
        assert_eq!(open(&options(c"gpu"), &raw mut session), Status::Usage);
        failed_as("devices are");
        let unknown = open(&options(c"model:g99"), &raw mut session);
        assert_eq!(unknown, Status::Usage);
        // Another GPU shows when the session is opened.
        let other = open(&options(c"model:g71"), &raw mut session);
        assert_eq!(other, Status::Device);
        failed_as("another GPU");
        let mut many = options(c"model");
        many.threads = 100_000;
        assert_eq!(open(&raw const many, &raw mut session), Status::Usage);
        let mut layer = 99;
        let name = c"pool1".as_ptr();
        assert_eq!(gpureplay_layer(recording, name, &raw mut layer), Status::Ok);
        assert_eq!(layer, 2);
        assert_eq!(open(null(), &raw mut session), Status::Ok);
        // The session keeps what it needs.
        gpureplay_close(recording);
        gpureplay_close(null_mut());
        assert_eq!(gpureplay_run(null_mut()), Status::Usage);
        assert_eq!(gpureplay_run(session), Status::Input);
        failed_as("input f32[8,8] has no value");
        let image = [0f32; 64];
        let data = image.as_ptr().cast();
        let bind = |name: &CStr, element, data, bytes| {
            gpureplay_bind(session, name.as_ptr(), element, data, bytes)
        };
        assert_eq!(bind(c"input", f32s, data, 255), Status::Usage);
        failed_as("has 256 bytes, 255 were given");
        assert_eq!(bind(c"input", f32s, null(), 256), Status::Usage);
        assert_eq!(bind(c"x", f32s, data, 256), Status::Usage);
        well(bind(c"input", f32s, data, 256));
        // Integers of the same size are no single-precision numbers.
        let integers = [16i32; 64];
        let wrong = ElementType::I32 as u32;
        for wrong in [wrong, 99] {
            let data = integers.as_ptr().cast();
            assert_eq!(bind(c"input", wrong, data, 256), Status::Usage);
        }
        failed_as("no element type 99");
        assert_eq!(gpureplay_run_layers(session, 3, 2), Status::Usage);
        let mut out = [0f32; 10];
        let room = out.as_mut_ptr().cast();
        let name = c"probabilities".as_ptr();
        let read = |element, bytes| gpureplay_read(session, name, element, room, bytes);
        assert_eq!(read(f32s, 40), Status::Input);
        well(gpureplay_run(session));
        assert_eq!(read(f32s, 36), Status::Usage);
        well(read(f32s, 40));
        assert_eq!(read(wrong, 40), Status::Usage);
        failed_as("expected elements of f32");
        let mut timing = RunTiming::default();
        assert_eq!(gpureplay_timing(session, &raw mut timing), Status::Ok);
        assert!(timing.chains > 0 && timing.run >= timing.device && timing.device > 0.0);
        gpureplay_session_close(session);
        gpureplay_session_close(null_mut());
        assert!((out.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{out:?}");
    }
}

#[test]
fn recordings_come_from_memory_and_from_packs_and_signed() {
    let bytes = std::fs::read(digits().join("recording.gpr")).unwrap();
    let mut recording = null_mut();
    let data = bytes.as_ptr().cast();
    // SAFETY: every pointer is null, comes from the function that makes it, or points to what lives here.
    unsafe {
        let open = gpureplay_open_bytes(data, bytes.len(), &raw mut recording);
        well(open);
        assert_eq!(gpureplay_tensor_count(recording), 16);
        gpureplay_close(recording);
        let cut = gpureplay_open_bytes(data, bytes.len() - 1, &raw mut recording);
        assert_eq!(cut, Status::Recording);
        assert_eq!(
            gpureplay_open_bytes(null(), 0, &raw mut recording),
            Status::Usage
        );
        // A good key, but nothing is signed.
        let key = c"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a".as_ptr();
        let path = text(&digits());
        let signed = gpureplay_open_signed(path.as_ptr(), key, 0, &raw mut recording);
        assert_eq!(signed, Status::Recording);
        failed_as("a signature is required");
        let version = CStr::from_ptr(gpureplay_version()).to_str().unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }
}

/// From an ending thread: status, text, two counts.
type Answer = (Status, String, usize, usize);

/// Calls into the library when its thread ends.
#[derive(Default)]
struct Late(Mutex<Option<Sender<Answer>>>);

thread_local! {
    static LATE: Late = Late::default();
}

impl Drop for Late {
    fn drop(&mut self) {
        let mut recording = null_mut();
        // SAFETY: every pointer is null or to what lives here.
        let answer = unsafe {
            let status = gpureplay_open(null(), &raw mut recording);
            let (tensors, layers) = (
                gpureplay_tensor_count(null()),
                gpureplay_layer_count(null()),
            );
            (status, last_error(), tensors, layers)
        };
        if let Some(to) = self.0.get_mut().unwrap().take() {
            to.send(answer).unwrap();
        }
    }
}

#[test]
fn a_thread_that_ends_may_still_call() {
    for failed_before in [true, false] {
        let (to, from) = channel();
        let thread = std::thread::spawn(move || {
            // Destructors run in reverse: the library's text is gone when this one runs.
            LATE.with(|late| *late.0.lock().unwrap() = Some(to));
            if failed_before {
                // SAFETY: null is refused.
                unsafe { gpureplay_run(null_mut()) };
                failed_as("session");
            }
        });
        thread.join().unwrap();
        let (status, text, tensors, layers) = from.recv().unwrap();
        assert_eq!((status, tensors, layers), (Status::Usage, 0, 0));
        assert!(text.is_empty() || !failed_before, "{text}");
    }
}

/// Lets a recurrent network write `characters` by itself.
///
/// # Safety
/// The session is one of `generate-g52`.
unsafe fn write(session: *mut SessionHandle, characters: usize) -> String {
    let mut text = String::new();
    for _ in 0..characters {
        let mut read = 0u8;
        let (name, element) = (c"character".as_ptr(), ElementType::U8 as u32);
        // SAFETY: the caller's promise, and one byte is there.
        unsafe {
            well(gpureplay_run(session));
            let done = gpureplay_read(session, name, element, (&raw mut read).cast(), 1);
            well(done);
        }
        text.push(char::from(read));
    }
    text
}

#[test]
fn states_are_read_written_and_reset() {
    let path = text(&here().join("../../recordings/generate-g52"));
    let (mut recording, mut session) = (null_mut(), null_mut());
    let (f32s, i32s) = (ElementType::F32 as u32, ElementType::I32 as u32);
    let (hidden, token) = (c"hidden".as_ptr(), c"token".as_ptr());
    let (mut kept, mut last) = ([0f32; 192], 0i32);
    let own = -1i32;
    // SAFETY: every pointer is null, comes from the function that makes it, or points to what lives here.
    unsafe {
        well(gpureplay_open(path.as_ptr(), &raw mut recording));
        let opened = gpureplay_session_open(recording, null(), &raw mut session);
        well(opened);
        gpureplay_close(recording);
        let bind = |name, element, data, bytes| gpureplay_bind(session, name, element, data, bytes);
        let forced = (&raw const own).cast();
        well(bind(c"forced".as_ptr(), i32s, forced, 4));

        assert_eq!(write(session, 30), "ten little frogs on the log, o");
        let read = gpureplay_read(session, hidden, f32s, kept.as_mut_ptr().cast(), 768);
        well(read);
        let read = gpureplay_read(session, token, i32s, (&raw mut last).cast(), 4);
        well(read);
        assert!(kept.iter().any(|value| *value != 0.0));
        let rest = write(session, 26);
        assert_eq!(rest, "ne hopped off, nine left.\n");

        // It goes on from the read state.
        well(bind(hidden, f32s, kept.as_ptr().cast(), 768));
        well(bind(token, i32s, (&raw const last).cast(), 4));
        assert_eq!(write(session, 26), rest);
        let short = bind(hidden, f32s, kept.as_ptr().cast(), 764);
        assert_eq!(short, Status::Usage);

        assert_eq!(gpureplay_reset_states(session), Status::Ok);
        assert_eq!(write(session, 10), "ten little");
        for state in [hidden, token] {
            assert_eq!(gpureplay_unbind(session, state), Status::Ok);
        }
        assert_eq!(write(session, 10), "ten little");
        gpureplay_session_close(session);
        assert_eq!(gpureplay_reset_states(null_mut()), Status::Usage);
    }
}
