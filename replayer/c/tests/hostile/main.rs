// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changed recordings through the C interface, from C and several threads.
#![allow(clippy::unwrap_used)]

use std::ffi::{CStr, CString};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use gpureplay::*;
use gpureplay_trials::{Parts, shipped, soundness};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, each: u64) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in ["saxpy-g52", "digits-g52", "acl-conv-g52"] {
        let bytes = shipped::named(name).unwrap().bytes;
        let parts = Parts::of(&bytes).unwrap();
        for seed in 0..each {
            let file = match seed {
                0 => bytes.clone(),
                1 => bytes[..bytes.len() / 2].to_vec(),
                seed => soundness::changed(&parts, seed).file(),
            };
            let path = folder.join(format!("{name}-{seed}.gpr"));
            std::fs::write(&path, file).unwrap();
            files.push(path);
        }
    }
    files
}

/// With AddressSanitizer if the compiler has it. `None` if the library has one already.
fn program(folder: &Path) -> Option<PathBuf> {
    let tests = std::env::current_exe().unwrap();
    let library = tests.parent().unwrap().join("libgpureplay.so");
    assert!(library.exists(), "no library for C: {}", library.display());
    // By the name that programs ask for when they start.
    symlink(&library, folder.join("libgpureplay.so.0")).unwrap();
    let program = folder.join("hostile");
    let compiled = |sanitized: bool| {
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g"])
            .arg("-I")
            .arg(here().join("include"))
            .arg(here().join("tests/hostile/hostile.c"))
            .arg("-o")
            .arg(&program)
            .arg(&library)
            .arg(format!("-Wl,-rpath,{}", folder.display()));
        if sanitized {
            compiler.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        }
        compiler.output().unwrap()
    };
    // A sanitized library needs its own sanitizer's runtime.
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        return None;
    }
    let first = compiled(true);
    if !first.status.success() {
        eprintln!("SKIPPED: the C compiler has no AddressSanitizer");
        let plain = compiled(false);
        let text = String::from_utf8_lossy(&plain.stderr).into_owned();
        assert!(plain.status.success(), "{text}");
    }
    Some(program)
}

#[test]
fn a_program_in_c_survives_files_of_strangers() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path(), 60);
    let Some(program) = program(folder.path()) else {
        eprintln!("SKIPPED: the library has a sanitizer; its functions are called below");
        return;
    };
    let output = Command::new(program).args(&files).output().unwrap();
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{:?} {out} {error}", output.status);
    let counts: Vec<usize> = out
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    let [opened, ran, read] = counts[..] else {
        panic!("{out}")
    };
    // The three unchanged ones, and some changed ones.
    assert!(opened > 3 && opened < files.len(), "{out}");
    assert!(ran >= 3 && ran <= opened && read > ran, "{out}");
}

/// The same from here, for a library with a sanitizer.
#[test]
fn the_functions_survive_files_of_strangers() {
    let folder = tempfile::tempdir().unwrap();
    let (mut opened, mut ran) = (0, 0);
    let files = files(folder.path(), 40);
    for file in &files {
        let path = CString::new(file.to_str().unwrap()).unwrap();
        let (mut recording, mut session) = (null_mut(), null_mut());
        // SAFETY: every pointer is null, comes from the function that makes it, or points to what lives here.
        unsafe {
            if gpureplay_open(path.as_ptr(), &raw mut recording) != Status::Ok {
                assert!(!last_error().is_empty());
                continue;
            }
            opened += 1;
            let status = gpureplay_session_open(recording, null(), &raw mut session);
            let count = gpureplay_tensor_count(recording);
            let mut tensors = Vec::new();
            for index in 0..=count {
                let mut info = std::mem::MaybeUninit::<TensorDescription>::uninit();
                let told = gpureplay_tensor(recording, index, info.as_mut_ptr());
                assert_eq!(told == Status::Ok, index < count);
                if told == Status::Ok {
                    tensors.push(info.assume_init());
                }
            }
            if status == Status::Ok {
                for info in &tensors {
                    let bytes = vec![0u8; info.bytes];
                    let (name, element) = (info.name, info.element as u32);
                    gpureplay_bind(session, name, element, bytes.as_ptr().cast(), bytes.len());
                }
                ran += usize::from(gpureplay_run(session) == Status::Ok);
                for info in &tensors {
                    let mut bytes = vec![0u8; info.bytes];
                    let (name, element) = (info.name, info.element as u32);
                    gpureplay_read(
                        session,
                        name,
                        element,
                        bytes.as_mut_ptr().cast(),
                        bytes.len(),
                    );
                    let short = bytes.len().wrapping_sub(1);
                    let status =
                        gpureplay_read(session, name, element, bytes.as_mut_ptr().cast(), short);
                    assert_ne!(status, Status::Ok);
                }
                gpureplay_session_close(session);
            }
            gpureplay_close(recording);
        }
    }
    assert!(
        opened > 3 && opened < files.len() && ran >= 3,
        "{opened} {ran}"
    );
}

fn last_error() -> String {
    // SAFETY: the function returns a string that is valid until this thread's next failure.
    unsafe { CStr::from_ptr(gpureplay_last_error()) }
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn threads_in_one_session_get_an_answer_or_an_error() {
    let path = here().join("../../recordings/saxpy-g52");
    let path = CString::new(path.to_str().unwrap()).unwrap();
    let (mut recording, mut session) = (null_mut(), null_mut());
    // SAFETY: every pointer is null or comes from the function that makes it.
    unsafe {
        assert_eq!(
            gpureplay_open(path.as_ptr(), &raw mut recording),
            Status::Ok
        );
        let opened = gpureplay_session_open(recording, null(), &raw mut session);
        assert_eq!(opened, Status::Ok, "{}", last_error());
    }
    let file = |name: &str| {
        let file = here().join("../../recordings/saxpy-g52/inputs").join(name);
        CString::new(file.to_str().unwrap()).unwrap()
    };
    let inputs = [(c"x", file("x.npy")), (c"y", file("y.npy"))];
    for (name, file) in &inputs {
        // SAFETY: as above; both are strings.
        let bound = unsafe { gpureplay_bind_file(session, name.as_ptr(), file.as_ptr()) };
        assert_eq!(bound, Status::Ok, "{}", last_error());
    }
    let (good, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let shared = AtomicPtr::new(session);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let session = shared.load(Ordering::Relaxed);
                for _ in 0..20 {
                    // SAFETY: the session lives until all threads have ended.
                    let status = unsafe { gpureplay_run(session) };
                    match status {
                        Status::Ok => good.fetch_add(1, Ordering::Relaxed),
                        Status::Usage => {
                            assert!(last_error().contains("another thread"), "{}", last_error());
                            busy.fetch_add(1, Ordering::Relaxed)
                        }
                        other => panic!("{other:?}: {}", last_error()),
                    };
                }
            });
        }
    });
    assert_eq!(
        good.load(Ordering::Relaxed) + busy.load(Ordering::Relaxed),
        80
    );
    assert!(good.load(Ordering::Relaxed) > 0);
    // SAFETY: as above; nobody uses them any more.
    unsafe {
        gpureplay_session_close(session);
        gpureplay_close(recording);
    }
}
