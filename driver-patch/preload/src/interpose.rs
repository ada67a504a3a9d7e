// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exported functions, and the process's recorder.
//!
//! Two locks: a job holds the first from before its submission until its end, so that jobs run one at a time and
//! nothing is freed meanwhile; the second guards the recorder and is never held while the driver works on a job. Calls
//! on other files take neither. A child of `fork` gets its own recorder when it first needs one; one of `vfork`, which
//! shares the memory, makes no such call.

pub mod kbase;
pub mod waits;

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::{slice, str};

use crate::arguments::{answered, given};
use crate::guard::hold;
use crate::kernel::Kernel;
use crate::next::{self, keep_errno};
use crate::panthor;
use crate::recorder::Recorder;
use crate::submit::submit;
use gpureplay_trace::Driver as Driven;
use mali_uapi::panfrost::request::{self as uapi, Request};

static TRACE: OnceLock<PathBuf> = OnceLock::new();

struct Shared {
    process: c_int,
    job: Mutex<()>,
    recorder: Mutex<Recorder<Kernel>>,
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

const UNKNOWN: u8 = 0;
const OTHER: u8 = 1;
/// From here on: panfrost, panthor, kbase.
const PANFROST: u8 = 2;
const PANTHOR: u8 = 3;
const KBASE: u8 = 4;

/// Higher numbers are asked about each time.
static KINDS: [AtomicU8; 1 << 16] = [const { AtomicU8::new(UNKNOWN) }; 1 << 16];

fn kind(fd: c_int) -> Option<&'static AtomicU8> {
    KINDS.get(usize::try_from(fd).ok()?)
}

fn own_process() -> c_int {
    // SAFETY: always works.
    unsafe { libc::getpid() }
}

fn existing() -> Option<&'static Shared> {
    // SAFETY: only pointers to what lives for ever are stored.
    let shared = unsafe { SHARED.load(Ordering::Acquire).as_ref() }?;
    (shared.process == own_process()).then_some(shared)
}

fn shared() -> Option<&'static Shared> {
    let path = TRACE.get()?;
    if let Some(shared) = existing() {
        return Some(shared);
    }
    let before = SHARED.load(Ordering::Acquire);
    let new = Box::into_raw(Box::new(Shared {
        process: own_process(),
        job: Mutex::new(()),
        recorder: Mutex::new(Recorder::new(Kernel, path.clone())),
    }));
    if SHARED
        .compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        // SAFETY: nobody else has seen it.
        drop(unsafe { Box::from_raw(new) });
    } else if !before.is_null() {
        // A child of `fork` has seen no number yet.
        KINDS
            .iter()
            .for_each(|kind| kind.store(UNKNOWN, Ordering::Relaxed));
    }
    existing()
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        if let Some(path) = std::env::var_os("GPUREPLAY_TRACE").filter(|path| !path.is_empty()) {
            let path = std::path::absolute(&path).unwrap_or_else(|_| path.into());
            let _ = TRACE.set(path);
        }
    }
    loaded
};

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static ENDED: extern "C" fn() = end;

#[cfg(not(test))]
extern "C" fn end() {
    if let Some(shared) = existing() {
        let _job = hold(&shared.job);
        hold(&shared.recorder).end();
    }
}

fn followed(fd: c_int) -> Option<(&'static Shared, u8)> {
    let known = kind(fd).map_or(UNKNOWN, |kind| kind.load(Ordering::Relaxed));
    if known == OTHER {
        return None;
    }
    if let (PANFROST.., Some(shared)) = (known, existing()) {
        return Some((shared, known));
    }
    let before = next::errno();
    let shared = shared()?;
    let found = match hold(&shared.recorder).kind(fd) {
        None => OTHER,
        Some(Driven::Panthor) => PANTHOR,
        Some(Driven::Kbase) => KBASE,
        Some(_) => PANFROST,
    };
    if let Some(kind) = kind(fd) {
        kind.store(found, Ordering::Relaxed);
    }
    next::set_errno(before);
    (found >= PANFROST).then_some((shared, found))
}

/// # Safety
/// As for `ioctl`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: passed on.
    let pass = || unsafe { next::ioctl(fd, request, argument) };
    // The kernel looks at 32 bits.
    let asked = Request(request as u32);
    if TRACE.get().is_none() || argument.is_null() {
        return pass();
    }
    let place = argument.expose_provenance() as u64;
    match asked.class() {
        Request::DRM => {}
        Request::KBASE => return kbase::call(fd, asked, place, pass),
        _ => return pass(),
    }
    let Some((shared, driver)) = followed(fd) else {
        return pass();
    };
    let recorder = &shared.recorder;
    if driver == KBASE {
        return pass();
    }
    if driver == PANTHOR {
        return panthor::call((recorder, &shared.job), (fd, asked, place), pass);
    }
    match asked.number() {
        uapi::number::SUBMIT => match given::<uapi::Submit>(asked, place) {
            Some(job) => {
                let _job = hold(&shared.job);
                submit(recorder, (fd, asked, place), &job, pass)
            }
            None => pass(),
        },
        uapi::number::CREATE_BO => {
            let result = pass();
            if result == 0
                && let Some(made) = answered::<uapi::CreateBo>(asked, place)
            {
                keep_errno(|| hold(recorder).created(fd, &made));
            }
            result
        }
        uapi::number::GEM_CLOSE => {
            let Some(closed) = given::<uapi::GemClose>(asked, place) else {
                return pass();
            };
            let _job = hold(&shared.job);
            keep_errno(|| hold(recorder).freed(fd, closed.handle));
            pass()
        }
        uapi::number::MADVISE => {
            let Some(advice) = given::<uapi::Madvise>(asked, place) else {
                return pass();
            };
            let _job = hold(&shared.job);
            keep_errno(|| hold(recorder).advises(fd, &advice));
            let result = pass();
            if result == 0
                && let Some(advice) = answered::<uapi::Madvise>(asked, place)
            {
                keep_errno(|| hold(recorder).advised(fd, &advice));
            }
            result
        }
        uapi::number::PRIME_FD_TO_HANDLE => {
            let result = pass();
            if result == 0
                && let Some(shared) = answered::<uapi::Prime>(asked, place)
            {
                keep_errno(|| hold(recorder).imported(fd, shared.fd, shared.handle));
            }
            result
        }
        uapi::number::PRIME_HANDLE_TO_FD => {
            if let Some(shared) = given::<uapi::Prime>(asked, place) {
                keep_errno(|| hold(recorder).exported(fd, shared.handle));
            }
            pass()
        }
        uapi::number::SYNCOBJ_DESTROY => {
            let _job = hold(&shared.job);
            let result = pass();
            if result == 0
                && let Some(gone) = given::<uapi::Syncobj>(asked, place)
            {
                keep_errno(|| hold(recorder).sync_gone(fd, gone.handle));
            }
            result
        }
        _ => pass(),
    }
}

/// # Safety
/// As for `mmap64`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    size: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // A copy of a number may be new here. Without a recorder there is nothing to map.
    if fd >= 0
        && existing().is_some()
        && let Some((shared, driver)) = followed(fd)
    {
        let recorder = &shared.recorder;
        if hold(recorder).is_sealed(fd, offset as u64) {
            next::set_errno(libc::EINVAL);
            return libc::MAP_FAILED;
        }
        keep_errno(|| hold(recorder).maps(fd, offset as u64));
        if driver == KBASE {
            // SAFETY: passed on.
            let result = unsafe { next::mmap64(at, size, protection, flags, fd, offset) };
            if result != libc::MAP_FAILED {
                let va = result.expose_provenance() as u64;
                keep_errno(|| hold(recorder).placed(fd, offset as u64, va));
            }
            return result;
        }
    }
    // SAFETY: passed on.
    let call = || unsafe { next::mmap64(at, size, protection, flags, fd, offset) };
    match flags & libc::MAP_FIXED {
        0 => call(),
        _ => kbase::vacate(at, size, call),
    }
}

/// With offsets of 64 bits.
///
/// # Safety
/// As for `mmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    size: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the same function by another name.
    unsafe { mmap64(at, size, protection, flags, fd, offset) }
}

fn forget(fd: c_int) {
    // A child of vfork may close its own numbers here: what was known can be asked again.
    let panfrost = kind(fd).is_none_or(|kind| kind.swap(UNKNOWN, Ordering::Relaxed) >= PANFROST);
    if panfrost
        && fd >= 0
        && let Some(shared) = existing()
    {
        keep_errno(|| {
            let _job = hold(&shared.job);
            hold(&shared.recorder).closes(fd);
        });
    }
}

fn replaced(to: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let panfrost = kind(to).is_none_or(|kind| kind.load(Ordering::Relaxed) >= PANFROST);
    let shared = existing().filter(|_| panfrost && to >= 0);
    let _job = shared.map(|shared| hold(&shared.job));
    let result = call();
    if result >= 0 {
        if let Some(kind) = kind(to) {
            kind.store(UNKNOWN, Ordering::Relaxed);
        }
        if let Some(shared) = shared {
            keep_errno(|| hold(&shared.recorder).closes(to));
        }
    }
    result
}

/// # Safety
/// As for `close`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    forget(fd);
    // SAFETY: passed on.
    unsafe { next::close(fd) }
}

/// # Safety
/// As for `dup2`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: passed on.
    let call = || unsafe { next::dup2(from, to) };
    if from == to {
        call()
    } else {
        replaced(to, call)
    }
}

/// # Safety
/// As for `dup3`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: passed on.
    replaced(to, || unsafe { next::dup3(from, to, flags) })
}

/// # Safety
/// As for `close_range`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
    /// `CLOSE_RANGE_UNSHARE`: this thread closes them, in its own table. Other flags close nothing now, or are
    /// wrong.
    const OWN_TABLE: c_int = 2;
    if flags & !OWN_TABLE == 0 {
        for fd in (first as usize)..KINDS.len().min((last as usize).saturating_add(1)) {
            forget(fd as c_int);
        }
    }
    // SAFETY: passed on.
    unsafe { next::close_range(first, last, flags) }
}

macro_rules! exits {
    ($($name:ident),+) => {$(
        /// Ends the process without `exit`'s functions.
        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(status: c_int) -> ! {
            end();
            // SAFETY: ends the process with all threads.
            unsafe { libc::syscall(libc::SYS_exit_group, status) };
            std::process::abort()
        }
    )+};
}
exits!(_exit, _Exit);

/// Takes a layer's ASCII text without an end; with no text it only answers. Returns 1 if the process is recorded.
///
/// # Safety
/// `text` has `length` bytes, or is null.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn gpureplay_note(text: *const c_char, length: usize) -> c_int {
    let Some(shared) = shared() else { return 0 };
    let mut recorder = hold(&shared.recorder);
    if !recorder.wants_notes() {
        return 0;
    }
    if !text.is_null() {
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
        if let Ok(text) = str::from_utf8(bytes) {
            keep_errno(|| recorder.note(text));
        }
    }
    1
}
