// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface as bad callers use it, and that the header is up to date. `cargo xtask examples` runs it from C and Python.
#![allow(clippy::unwrap_used)]

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

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

fn last_error() -> String {
    let text = gpureplay_last_error();
    // SAFETY: the function returns a string that is valid until this thread's next failure.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

fn text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

#[test]
fn bad_callers_get_errors() {
    let path = text(&digits());
    let mut recording = null_mut();
    let mut session = null_mut();
    // SAFETY: every pointer is null or comes from the function that makes it.
    unsafe {
        assert_eq!(gpureplay_open(null(), &raw mut recording), Status::Usage);
        assert!(last_error().contains("path is a null pointer"));
        assert_eq!(gpureplay_open(path.as_ptr(), null_mut()), Status::Usage);
        assert_eq!(
            gpureplay_open(c"\xff".as_ptr(), &raw mut recording),
            Status::Usage
        );
        assert_eq!(
            gpureplay_open(c"/none".as_ptr(), &raw mut recording),
            Status::Recording
        );
        assert!(last_error().contains("/none"), "{}", last_error());
        assert!(recording.is_null());
        assert_eq!(
            gpureplay_open(path.as_ptr(), &raw mut recording),
            Status::Ok
        );
        assert_eq!(gpureplay_io_count(recording), 16);
        assert_eq!(gpureplay_io_count(null()), 0);
        assert_eq!(gpureplay_layer_count(recording), 7);
        assert!(gpureplay_layer_name(recording, 7).is_null());
        assert_eq!(CStr::from_ptr(gpureplay_layer_name(recording, 2)), c"pool1");
        assert_eq!(gpureplay_io(recording, 99, null_mut()), Status::Usage);
        let open = |device: *const _, session| gpureplay_session_open(recording, device, session);
        assert_eq!(open(c"gpu".as_ptr(), &raw mut session), Status::Usage);
        assert!(last_error().contains("devices are"));
        assert_eq!(open(c"model:g99".as_ptr(), &raw mut session), Status::Usage);
        assert_eq!(open(null(), &raw mut session), Status::Ok);
        // The session keeps what it needs.
        gpureplay_close(recording);
        gpureplay_close(null_mut());
        assert_eq!(gpureplay_run(null_mut()), Status::Usage);
        assert_eq!(gpureplay_run(session), Status::Input);
        assert!(
            last_error().contains("input f32[8,8] is not given"),
            "{}",
            last_error()
        );
        let image = [0f32; 64];
        let data = image.as_ptr().cast();
        assert_eq!(
            gpureplay_bind(session, c"input".as_ptr(), data, 255),
            Status::Usage
        );
        assert!(last_error().contains("has 256 bytes, 255 were given"));
        assert_eq!(
            gpureplay_bind(session, c"input".as_ptr(), null(), 256),
            Status::Usage
        );
        assert_eq!(
            gpureplay_bind(session, c"x".as_ptr(), data, 256),
            Status::Usage
        );
        assert_eq!(
            gpureplay_bind(session, c"input".as_ptr(), data, 256),
            Status::Ok
        );
        assert_eq!(gpureplay_run_layers(session, 3, 2), Status::Usage);
        let mut out = [0f32; 10];
        let room = out.as_mut_ptr().cast();
        let name = c"probabilities".as_ptr();
        assert_eq!(gpureplay_read(session, name, room, 40), Status::Input);
        assert_eq!(gpureplay_run(session), Status::Ok, "{}", last_error());
        assert_eq!(gpureplay_read(session, name, room, 36), Status::Usage);
        assert_eq!(gpureplay_read(session, name, room, 40), Status::Ok);
        gpureplay_session_close(session);
        gpureplay_session_close(null_mut());
        assert!((out.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{out:?}");
    }
}
