// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library in a program.

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

use mali_uapi::panfrost::request::{CreateBo, MmapBo, Submit};

const APP: &str = "GPUREPLAY_TEST_APP";

/// Like a recorder: counts requests and maps.
const FRONT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/types.h>
static int requests, maps;
int ioctl(int fd, unsigned long request, void *argument)
{
	int (*next)(int, unsigned long, void *) = dlsym(RTLD_NEXT, "ioctl");
	requests += (request >> 8 & 0xff) == 'd';
	return next(fd, request, argument);
}
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap64");
	maps += fd >= 0;
	return next(at, length, protection, flags, fd, offset);
}
__attribute__((destructor)) static void end(void) { fprintf(stderr, "front: %d requests, %d maps\n", requests, maps); }
"#;

fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.parent().expect("a folder");
    let places = [folder, folder.parent().expect("a folder")]
        .map(|place| place.join("libgpureplay_node.so"));
    places
        .into_iter()
        .find(|place| place.exists())
        .expect("the node's library")
}

/// Success and standard error.
fn as_app(test: &str, libraries: &[&Path], gpu: &str) -> (bool, String) {
    let list: Vec<_> = libraries.iter().map(|path| path.as_os_str()).collect();
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("LD_PRELOAD", list.join(":".as_ref()))
        .env("GPUREPLAY_NODE_GPU", gpu)
        .env(APP, "1")
        .output()
        .expect("the app");
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn open_node() -> c_int {
    // SAFETY: the path is a C string.
    unsafe {
        libc::open64(
            c"/dev/dri/renderD128".as_ptr(),
            libc::O_RDWR | libc::O_CLOEXEC,
        )
    }
}

#[test]
fn app() {
    if std::env::var_os(APP).is_none() {
        return;
    }
    let fd = open_node();
    assert!(fd >= 0, "no node");
    let ask = |number: u32, direction: u32, size: usize, argument: *mut c_void| {
        let request = direction << 30 | (size as u32) << 16 | u32::from(b'd') << 8 | number;
        // SAFETY: the argument has the size that the request says.
        unsafe { libc::ioctl(fd, request.into(), argument) }
    };
    let mut made = CreateBo {
        size: 8192,
        flags: 1,
        ..CreateBo::default()
    };
    assert_eq!(
        ask(0x42, 3, size_of::<CreateBo>(), (&raw mut made).cast()),
        0
    );
    let mut map = MmapBo {
        handle: made.handle,
        ..MmapBo::default()
    };
    assert_eq!(ask(0x43, 3, size_of::<MmapBo>(), (&raw mut map).cast()), 0);
    let words = |flags| {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        unsafe {
            libc::mmap64(
                std::ptr::null_mut(),
                8192,
                rights,
                flags,
                fd,
                map.offset as i64,
            )
        }
    };
    assert_eq!(words(libc::MAP_PRIVATE), libc::MAP_FAILED);
    let words = words(libc::MAP_SHARED).cast::<u64>();
    assert_ne!(words.cast(), libc::MAP_FAILED);
    // Write-value: type 2, 64 bits of 0x5a5a to the second page.
    let job = [
        (2, 1 | 2 << 1 | 1 << 16),
        (4, made.va + 4096),
        (5, 7),
        (6, 0x5a5a),
    ];
    for (word, value) in job {
        // SAFETY: inside the mapping.
        unsafe { words.add(word).write_volatile(value) };
    }
    let mut submit = Submit {
        head: made.va,
        handles: (&raw mut made.handle).expose_provenance() as u64,
        handle_count: 1,
        ..Submit::default()
    };
    assert_eq!(
        ask(0x40, 1, size_of::<Submit>(), (&raw mut submit).cast()),
        0
    );
    // SAFETY: inside the mapping; the job is done.
    assert_eq!(unsafe { words.add(512).read_volatile() }, 0x5a5a);
    submit.handles = 8;
    assert_eq!(
        ask(0x40, 1, size_of::<Submit>(), (&raw mut submit).cast()),
        -1
    );
    assert_eq!(
        std::io::Error::last_os_error().raw_os_error(),
        Some(libc::EFAULT)
    );
    // SAFETY: our own descriptor; its number is a usual file's afterwards.
    assert_eq!(unsafe { libc::close(fd) }, 0);
    assert_eq!(
        ask(0x42, 3, size_of::<CreateBo>(), (&raw mut made).cast()),
        -1
    );
    // Memory stays as long as it is mapped.
    // SAFETY: inside the mapping.
    assert_eq!(unsafe { words.add(512).read_volatile() }, 0x5a5a);
}

/// The GPU's name is unknown.
#[test]
fn without() {
    if std::env::var_os(APP).is_some() {
        assert_eq!(open_node(), -1);
        assert_eq!(
            std::io::Error::last_os_error().raw_os_error(),
            Some(libc::ENODEV)
        );
    }
}

#[test]
fn an_app_finds_the_node() {
    if std::env::var_os(APP).is_none() {
        for gpu in ["g31", "g52", "g57", "g71", "g72", "g76"] {
            let (good, text) = as_app("app", &[&library()], gpu);
            assert!(good, "{gpu}: {text}");
        }
        let (good, text) = as_app("without", &[&library()], "g1000");
        assert!(
            good && text.contains("no GPU g1000") && text.contains("g52"),
            "{text}"
        );
    }
}

#[test]
fn a_library_in_front_sees_all_and_reaches_the_node() {
    if std::env::var_os(APP).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, front) = (
        folder.path().join("front.c"),
        folder.path().join("front.so"),
    );
    std::fs::write(&source, FRONT).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&front)
        .arg(&source)
        .status();
    assert!(compiled.unwrap().success());
    let (good, text) = as_app("app", &[&front, &library()], "g52");
    assert!(good, "{text}");
    // The node's own calls are not counted.
    assert!(text.contains("front: 5 requests, 2 maps"), "{text}");
}
