// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that only files of kbase need: a region goes when it is unmapped, and the recorder may hold events that the app waits for.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpureplay_host::caller;
use gpureplay_trace::ErrorCode;
use mali_facts::kbase::request::{Event, number};
use mali_facts::panfrost::request::Request;
use zerocopy::IntoBytes;

use super::{KBASE, Shared, UNKNOWN, existing, followed, kind};
use crate::arguments::give_back;
use crate::guard::hold;
use crate::kernel;
use crate::log::say;
use crate::next::{self, keep_errno};

/// kbase's device, once a file of it is followed; 0 before.
static DEVICE: AtomicU64 = AtomicU64::new(0);
/// How long a thread waits for the driver before it looks whether the recorder has an event.
const SLICE: Duration = Duration::from_millis(5);
const EVENT: usize = size_of::<Event>();

/// A request of kbase's class, whose argument lies at `place`; `pass` passes it on as it came.
pub(super) fn call(fd: c_int, asked: Request, place: u64, pass: impl Fn() -> c_int) -> c_int {
    match asked.number() {
        number::VERSION_CHECK => pass(),
        number::VERSION_CHECK_STREAMS => {
            let result = pass();
            if result == 0 && keep_errno(|| kernel::is_kbase(fd)) {
                refuse_streams();
            }
            result
        }
        // From here on the driver tells what the GPU is.
        number::SET_FLAGS => {
            let result = pass();
            if result == 0 {
                if let Some(kind) = kind(fd) {
                    kind.store(UNKNOWN, Ordering::Relaxed);
                }
                keep_errno(|| learn(fd));
            }
            result
        }
        _ => match followed(fd) {
            Some((shared, KBASE)) => {
                let locks = (&shared.recorder, &shared.job);
                crate::kbase::call(locks, (fd, asked, place), pass)
            }
            _ => pass(),
        },
    }
}

fn learn(fd: c_int) {
    if let Some((_, KBASE)) = followed(fd) {
        let device = kernel::device(fd).unwrap_or(0);
        DEVICE.store(device, Ordering::Relaxed);
    }
}

fn refuse_streams() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        say("this kbase is a build for command streams, which is not recorded; the app continues");
    }
}

/// The recorder, if a number names a file of kbase. Takes no lock for other files: the recorder itself reads some while it holds one.
fn followed_kbase(fd: c_int) -> Option<&'static Shared> {
    let device = DEVICE.load(Ordering::Relaxed);
    if device == 0 || fd < 0 {
        return None;
    }
    match kind(fd).map_or(UNKNOWN, |kind| kind.load(Ordering::Relaxed)) {
        KBASE => existing(),
        UNKNOWN if keep_errno(|| kernel::device(fd)) == Some(device) => match followed(fd)? {
            (shared, KBASE) => Some(shared),
            _ => None,
        },
        _ => None,
    }
}

/// What is at these addresses goes with the call; no job runs meanwhile.
pub(super) fn vacate<T>(at: *mut c_void, size: usize, call: impl FnOnce() -> T) -> T {
    let (va, size) = (at.expose_provenance() as u64, size as u64);
    let shared = existing().filter(|_| DEVICE.load(Ordering::Relaxed) != 0 && size > 0);
    match shared.filter(|shared| hold(&shared.recorder).has_regions(va, size)) {
        Some(shared) => {
            let _job = hold(&shared.job);
            // The driver may give the addresses to another thread at once.
            let mut recorder = hold(&shared.recorder);
            keep_errno(|| recorder.vacated(va, size));
            call()
        }
        None => call(),
    }
}

/// The C library's.
///
/// # Safety
/// As for `munmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munmap(at: *mut c_void, size: usize) -> c_int {
    // SAFETY: passed on as it came.
    vacate(at, size, || unsafe { next::munmap(at, size) })
}

/// The C library's.
///
/// # Safety
/// As for `read`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, size: usize) -> isize {
    // SAFETY: passed on as it came.
    let pass = || unsafe { next::read(fd, to, size) };
    let Some(shared) = followed_kbase(fd).filter(|_| size >= EVENT) else {
        return pass();
    };
    let ready = |longest: Duration| {
        let mut wait = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one element, which lives as long as the call.
        unsafe { next::poll(&mut wait, 1, longest.as_millis() as c_int) }
    };
    let place = to.expose_provenance() as u64;
    loop {
        {
            // An atom that runs is looked at before the app is told of its end.
            let _job = hold(&shared.job);
            let mut done = 0;
            while size - done >= EVENT {
                let Some(event) = hold(&shared.recorder).next_event(fd) else {
                    break;
                };
                if !give_back(place.wrapping_add(done as u64), event.as_bytes()) {
                    next::set_errno(libc::EFAULT);
                    return -1;
                }
                done += EVENT;
            }
            if done > 0 {
                return done as isize;
            }
            if ready(Duration::ZERO) != 0 {
                return pass();
            }
        }
        // SAFETY: asks for flags.
        if unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK != 0 {
            next::set_errno(libc::EAGAIN);
            return -1;
        }
        if ready(SLICE) < 0 {
            return -1;
        }
    }
}

/// Waits as `wait` does, for so long at most, or until the recorder has an event for one of the files.
///
/// # Safety
/// `wait` looks at as many elements at `fds` as `count` states.
unsafe fn waits(
    (fds, count): (*mut libc::pollfd, libc::nfds_t),
    longest: Option<Duration>,
    wait: impl Fn(Option<Duration>) -> c_int,
) -> c_int {
    let mut files = Vec::new();
    if DEVICE.load(Ordering::Relaxed) != 0 {
        let first = fds.expose_provenance() as u64;
        for index in 0..usize::try_from(count).unwrap_or(0) {
            let mut entry = [0; size_of::<libc::pollfd>()];
            let at = first.wrapping_add(size_of_val(&entry) as u64 * index as u64);
            // Where the driver can read no more it refuses all.
            if keep_errno(|| caller::read(at, &mut entry)).is_err() {
                break;
            }
            let [a, b, c, d, low, high, ..] = entry;
            let fd = c_int::from_ne_bytes([a, b, c, d]);
            let wanted = i16::from_ne_bytes([low, high]) & (libc::POLLIN | libc::POLLRDNORM);
            if let Some(shared) = followed_kbase(fd).filter(|_| wanted != 0) {
                files.push((index, fd, wanted, shared));
            }
        }
    }
    if files.is_empty() {
        return wait(longest);
    }
    let end = longest.and_then(|longest| Instant::now().checked_add(longest));
    loop {
        let has = |fd, shared: &Shared| hold(&shared.recorder).has_event(fd);
        let ready: Vec<_> = files
            .iter()
            .filter(|(_, fd, _, shared)| has(*fd, shared))
            .collect();
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let slice = match ready.is_empty() {
            true => left.map_or(SLICE, |left| left.min(SLICE)),
            false => Duration::ZERO,
        };
        let mut found = wait(Some(slice));
        if found < 0 {
            return found;
        }
        for (index, _, wanted, _) in &ready {
            // SAFETY: the call has just written all elements.
            let entry = unsafe { &mut *fds.add(*index) };
            found += c_int::from(entry.revents == 0);
            entry.revents |= wanted;
        }
        if found > 0 || left == Some(Duration::ZERO) {
            return found;
        }
    }
}

/// The C library's.
///
/// # Safety
/// As for `poll`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn poll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    milliseconds: c_int,
) -> c_int {
    let longest = u64::try_from(milliseconds).ok().map(Duration::from_millis);
    let wait = |longest: Option<Duration>| {
        let milliseconds = longest.map_or(-1, |it| it.as_millis() as c_int);
        // SAFETY: passed on as it came, with another time.
        unsafe { next::poll(fds, count, milliseconds) }
    };
    // SAFETY: as the caller promises.
    unsafe { waits((fds, count), longest, wait) }
}

/// The C library's.
///
/// # Safety
/// As for `ppoll`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ppoll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    time: *const libc::timespec,
    signals: *const libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's time, or none.
    let longest = unsafe { time.as_ref() }.map(|time| {
        let (seconds, nanoseconds) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32);
        Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds.into()))
    });
    let wait = |longest: Option<Duration>| {
        let time = longest.map(|longest| libc::timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: longest.subsec_nanos() as c_long,
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: passed on as it came, with another time.
        unsafe { next::ppoll(fds, count, time, signals) }
    };
    // SAFETY: as the caller promises.
    unsafe { waits((fds, count), longest, wait) }
}

/// The app waits for a file of kbase by a call that is not followed.
fn refuse_wait(fd: c_int) {
    if let Some(shared) = followed_kbase(fd) {
        keep_errno(|| hold(&shared.recorder).refuses(fd, ErrorCode::Waits, fd as u64));
    }
}

/// The C library's.
///
/// # Safety
/// As for `epoll_ctl`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut c_void,
) -> c_int {
    refuse_wait(fd);
    // SAFETY: passed on as it came.
    unsafe { next::epoll_ctl(epoll, operation, fd, event) }
}

/// The C library's.
///
/// # Safety
/// As for `select`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn select(
    end: c_int,
    read: *mut c_void,
    write: *mut c_void,
    other: *mut c_void,
    time: *mut libc::timeval,
) -> c_int {
    if DEVICE.load(Ordering::Relaxed) != 0 && !read.is_null() {
        let set = read.cast::<libc::fd_set>().cast_const();
        for fd in 0..end.clamp(0, libc::FD_SETSIZE as c_int) {
            // SAFETY: the caller's set has a bit for each number below `end`.
            if unsafe { libc::FD_ISSET(fd, set) } {
                refuse_wait(fd);
            }
        }
    }
    // SAFETY: passed on as it came.
    unsafe { next::select(end, read, write, other, time) }
}

macro_rules! checked {
    ($($name:ident = $of:ident($($argument:ident: $type:ty),*) -> $result:ty, $bytes:expr;)+) => {$(
        /// The C library's, of programs that check the sizes of their buffers.
        ///
        /// # Safety
        /// As for the function without the check.
        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type,)* room: usize) -> $result {
            if $bytes > room {
                std::process::abort();
            }
            // SAFETY: as the caller promises.
            unsafe { $of($($argument),*) }
        }
    )+};
}
checked! {
    __read_chk = read(fd: c_int, to: *mut c_void, size: usize) -> isize, size;
    __poll_chk = poll(fds: *mut libc::pollfd, count: libc::nfds_t, milliseconds: c_int) -> c_int,
        (count as usize).saturating_mul(size_of::<libc::pollfd>());
    __ppoll_chk = ppoll(fds: *mut libc::pollfd, count: libc::nfds_t, time: *const libc::timespec, signals: *const libc::sigset_t) -> c_int,
        (count as usize).saturating_mul(size_of::<libc::pollfd>());
}
