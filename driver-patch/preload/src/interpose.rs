// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that the library exports, and the one recorder of the process behind them.
//!
//! Two locks: a job holds the first from before its submission until its end, so that jobs run one at a time and nothing is freed
//! meanwhile; the second guards the recorder and is never held while the driver works on a job. Calls on files that are not panfrost's
//! take neither. A child of `fork` gets a recorder of its own, when it first uses panfrost; one of `vfork`, which shares the memory,
//! makes no such call.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::{slice, str};

use crate::guard::hold;
use crate::kernel::{self, Kernel};
use crate::next;
use crate::recorder::Recorder;
use mali_facts::panfrost::request::{self as uapi, Request};

/// The trace, which `GPUREPLAY_TRACE` names; set when the library is loaded.
static TRACE: OnceLock<PathBuf> = OnceLock::new();

/// The recorder of a process.
struct Shared {
    process: c_int,
    job: Mutex<()>,
    recorder: Mutex<Recorder<Kernel>>,
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// What is known of a number of a file.
const UNKNOWN: u8 = 0;
const OTHER: u8 = 1;
const PANFROST: u8 = 2;

/// Of the first numbers; higher ones are asked about at each call.
static KINDS: [AtomicU8; 1 << 16] = [const { AtomicU8::new(UNKNOWN) }; 1 << 16];

fn kind(fd: c_int) -> Option<&'static AtomicU8> {
    KINDS.get(usize::try_from(fd).ok()?)
}

fn own_process() -> c_int {
    // SAFETY: always works.
    unsafe { libc::getpid() }
}

/// The process's recorder, if there is one.
fn existing() -> Option<&'static Shared> {
    // SAFETY: only pointers to what lives for ever are stored.
    let shared = unsafe { SHARED.load(Ordering::Acquire).as_ref() }?;
    (shared.process == own_process()).then_some(shared)
}

/// The process's recorder; `None` if nothing is to be recorded.
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
        // SAFETY: nobody else has seen it: another thread was first.
        drop(unsafe { Box::from_raw(new) });
    } else if !before.is_null() {
        // A child of `fork`, whose recorder has not seen any number yet.
        KINDS
            .iter()
            .for_each(|kind| kind.store(UNKNOWN, Ordering::Relaxed));
    }
    existing()
}

/// Runs when the library is loaded.
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

/// Runs when the process ends by `exit`.
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

/// Whether a call on a number is one on panfrost, for this process's recorder.
fn followed(fd: c_int) -> Option<&'static Shared> {
    let known = kind(fd).map_or(UNKNOWN, |kind| kind.load(Ordering::Relaxed));
    if known == OTHER {
        return None;
    }
    if let (PANFROST, Some(shared)) = (known, existing()) {
        return Some(shared);
    }
    let before = next::errno();
    let shared = shared()?;
    let is_panfrost = hold(&shared.recorder).is_panfrost(fd);
    if let Some(kind) = kind(fd) {
        kind.store(
            if is_panfrost { PANFROST } else { OTHER },
            Ordering::Relaxed,
        );
    }
    next::set_errno(before);
    is_panfrost.then_some(shared)
}

/// Runs with the caller's `errno`, which the recorder's own calls change.
fn keep_errno<T>(work: impl FnOnce() -> T) -> T {
    let before = next::errno();
    let result = work();
    next::set_errno(before);
    result
}

/// The C library's.
///
/// # Safety
/// As for `ioctl`: the argument is what the request demands.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: passed on as it came.
    let pass = || unsafe { next::ioctl(fd, request, argument) };
    // The kernel looks at 32 bits.
    let asked = Request(request as u32);
    if !asked.class() == Request::DRM || TRACE.get().is_none() || argument.is_null() {
        return pass();
    }
    let Some(shared) = followed(fd) else {
        return pass();
    };
    let recorder = &shared.recorder;
    macro_rules! argument {
        ($type:ty) => {{
            if asked.size() < size_of::<$type>() {
                return pass();
            }
            // SAFETY: the caller has room for the request's size there, which is enough for the structure.
            unsafe { argument.cast::<$type>().read_unaligned() }
        }};
    }
    match asked.number() {
        uapi::number::SUBMIT => {
            let job = argument!(uapi::Submit);
            // SAFETY: as the caller promises.
            unsafe { submit(shared, fd, asked, argument, &job) }
        }
        uapi::number::CREATE_BO => {
            let result = pass();
            if result == 0 {
                let made = argument!(uapi::CreateBo);
                keep_errno(|| hold(recorder).created(fd, &made));
            }
            result
        }
        uapi::number::GEM_CLOSE => {
            let closed = argument!(uapi::GemClose);
            let _job = hold(&shared.job);
            keep_errno(|| hold(recorder).freed(fd, closed.handle));
            pass()
        }
        uapi::number::MADVISE => {
            let advice = argument!(uapi::Madvise);
            let _job = hold(&shared.job);
            keep_errno(|| hold(recorder).advises(fd, &advice));
            let result = pass();
            if result == 0 {
                let advice = argument!(uapi::Madvise);
                keep_errno(|| hold(recorder).advised(fd, &advice));
            }
            result
        }
        uapi::number::PRIME_FD_TO_HANDLE => {
            let result = pass();
            if result == 0 {
                let shared = argument!(uapi::Prime);
                keep_errno(|| hold(recorder).imported(fd, shared.fd, shared.handle));
            }
            result
        }
        uapi::number::PRIME_HANDLE_TO_FD => {
            let shared = argument!(uapi::Prime);
            keep_errno(|| hold(recorder).exported(fd, shared.handle));
            pass()
        }
        _ => pass(),
    }
}

/// Submits a job and waits for its end.
///
/// # Safety
/// The argument is that of a SUBMIT, `job` its beginning.
unsafe fn submit(
    shared: &Shared,
    fd: c_int,
    request: Request,
    argument: *mut c_void,
    job: &uapi::Submit,
) -> c_int {
    let recorder = &shared.recorder;
    let _job = hold(&shared.job);
    // SAFETY: as many handles lie there as the caller states.
    let handles = unsafe { words(job.handles, job.handle_count) };
    // SAFETY: the same.
    let mut in_syncs = unsafe { words(job.in_syncs, job.in_sync_count) };
    let before = next::errno();
    if !in_syncs.is_empty() {
        // What the driver refuses it refuses again below.
        let _ = kernel::wait(fd, &mut in_syncs);
    }
    hold(recorder).before_job(fd, &handles);
    let sync = match job.out_sync {
        0 => hold(recorder).sync(fd, || kernel::create_sync(fd)),
        sync => Some(sync),
    };
    // Later kernels have longer requests: what is not known is passed on.
    let mut bytes = [0u64; 64];
    let size = request.size().min(size_of_val(&bytes));
    // SAFETY: the caller has as many bytes there, and there is room for them here.
    unsafe { ptr::copy_nonoverlapping(argument.cast::<u8>(), bytes.as_mut_ptr().cast(), size) };
    let mine = bytes.as_mut_ptr().cast::<uapi::Submit>();
    // SAFETY: the place holds a whole structure, as the request's size says, and is aligned for it.
    unsafe { (*mine).out_sync = sync.unwrap_or(0) };
    let time = hold(recorder).now();
    next::set_errno(before);
    // SAFETY: the app's request, with a sync object for its end.
    let result = unsafe { next::ioctl(fd, c_ulong::from(request.0), mine.cast()) };
    if result != 0 {
        return result;
    }
    keep_errno(|| {
        hold(recorder).started(fd, job, time);
        let ended = sync.map(|sync| (sync, kernel::wait(fd, &mut [sync])));
        match ended {
            Some((sync, Ok(()))) => {
                let well = kernel::went_well(fd, sync);
                hold(recorder).ended_job(fd, job, well);
            }
            _ => hold(recorder).lost_job(job),
        }
    });
    result
}

/// Words of the caller's.
///
/// # Safety
/// As many lie at the address, unless that is zero.
unsafe fn words(address: u64, count: u32) -> Vec<u32> {
    let Ok(address) = usize::try_from(address) else {
        return Vec::new();
    };
    let place = ptr::with_exposed_provenance::<u32>(address);
    if place.is_null() {
        return Vec::new();
    }
    (0..count as usize)
        // SAFETY: within what the caller has there.
        .map(|index| unsafe { place.add(index).read_unaligned() })
        .collect()
}

/// The C library's.
///
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
    if kind(fd).is_some_and(|kind| kind.load(Ordering::Relaxed) == PANFROST)
        && let Some(shared) = existing()
    {
        keep_errno(|| hold(&shared.recorder).maps(fd, offset as u64));
    }
    // SAFETY: passed on as it came.
    unsafe { next::mmap64(at, size, protection, flags, fd, offset) }
}

/// The C library's, where offsets have 64 bits.
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

/// A number names nothing any more, or something else.
fn forget(fd: c_int) {
    let Some(kind) = kind(fd) else { return };
    // A child of vfork may be here, which closes numbers of its own: what was known can be asked again.
    if kind.swap(UNKNOWN, Ordering::Relaxed) == PANFROST
        && let Some(shared) = existing()
    {
        keep_errno(|| {
            let _job = hold(&shared.job);
            hold(&shared.recorder).closes(fd);
        });
    }
}

/// The C library's.
///
/// # Safety
/// As for `close`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    forget(fd);
    // SAFETY: passed on as it came.
    unsafe { next::close(fd) }
}

/// The C library's.
///
/// # Safety
/// As for `dup2`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    if from != to {
        forget(to);
    }
    // SAFETY: passed on as it came.
    unsafe { next::dup2(from, to) }
}

/// The C library's.
///
/// # Safety
/// As for `dup3`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    forget(to);
    // SAFETY: passed on as it came.
    unsafe { next::dup3(from, to, flags) }
}

/// The C library's.
///
/// # Safety
/// As for `close_range`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
    /// `CLOSE_RANGE_CLOEXEC`: nothing is closed now.
    const AT_EXEC: c_int = 4;
    if flags & AT_EXEC == 0 {
        for fd in (first as usize)..KINDS.len().min((last as usize).saturating_add(1)) {
            forget(fd as c_int);
        }
    }
    // SAFETY: passed on as it came.
    unsafe { next::close_range(first, last, flags) }
}

macro_rules! exits {
    ($($name:ident),+) => {$(
        /// The C library's: ends the process without the functions that `exit` calls.
        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(status: c_int) -> ! {
            end();
            // SAFETY: ends the process with all of its threads.
            unsafe { libc::syscall(libc::SYS_exit_group, status) };
            std::process::abort()
        }
    )+};
}
exits!(_exit, _Exit);

/// Takes what an OpenCL layer says, ASCII without an end; with no text it only answers. Returns 1 if the process is recorded.
///
/// # Safety
/// As many bytes lie at `text` as `length` states, or it is null.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn gpureplay_note(text: *const c_char, length: usize) -> c_int {
    let Some(shared) = shared() else { return 0 };
    let mut recorder = hold(&shared.recorder);
    if !recorder.wants_notes() {
        return 0;
    }
    if !text.is_null() {
        // SAFETY: as the caller promises.
        let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
        if let Ok(text) = str::from_utf8(bytes) {
            keep_errno(|| recorder.note(text));
        }
    }
    1
}
