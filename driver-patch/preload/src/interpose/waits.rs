// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for files: the recorder may hold events that kbase no longer has.

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gpureplay_host::caller;
use gpureplay_trace::ErrorCode;
use zerocopy::IntoBytes;

use super::Shared;
use super::kbase::{DEVICE, SLICE, followed_kbase};
#[cfg(not(test))]
use super::kbase::{pread64, read};
use crate::arguments::give_back;
use crate::guard::hold;
use crate::next::{self, keep_errno};

/// `wait` adds the recorder's events. `longest` bounds all calls together.
fn in_slices(
    longest: Option<Duration>,
    has_event: impl Fn() -> bool,
    mut wait: impl FnMut(Duration) -> c_int,
) -> c_int {
    let end = longest.and_then(|longest| Instant::now().checked_add(longest));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let slice = match has_event() {
            true => Duration::ZERO,
            false => left.map_or(SLICE, |left| left.min(SLICE)),
        };
        let found = wait(slice);
        if found != 0 || left == Some(Duration::ZERO) {
            return found;
        }
    }
}

fn duration(time: &libc::timespec) -> Duration {
    let (seconds, nanoseconds) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32);
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds.into()))
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos() as c_long,
    }
}

fn has_event(fd: c_int, shared: &Shared) -> bool {
    hold(&shared.recorder).has_event(fd)
}

/// An event of the recorder ends it, too.
///
/// # Safety
/// `wait` looks at `count` elements at `fds`.
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
            // The driver refuses all if it can read no more.
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
    let any = || {
        files
            .iter()
            .any(|(_, fd, _, shared)| has_event(*fd, shared))
    };
    in_slices(longest, any, |slice| {
        let mut found = wait(Some(slice));
        let ready = files.iter().filter(|_| found >= 0);
        let ready: Vec<_> = ready
            .filter(|(_, fd, _, shared)| has_event(*fd, shared))
            .collect();
        for (index, _, wanted, _) in ready {
            // SAFETY: the call has just written all elements.
            let entry = unsafe { &mut *fds.add(*index) };
            found += c_int::from(entry.revents == 0);
            entry.revents |= wanted;
        }
        found
    })
}

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
        // SAFETY: passed on, with another time.
        unsafe { next::poll(fds, count, milliseconds) }
    };
    // SAFETY: the caller's promise.
    unsafe { waits((fds, count), longest, wait) }
}

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
    let longest = unsafe { time.as_ref() }.map(duration);
    let wait = |longest: Option<Duration>| {
        let time = longest.map(timespec);
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: passed on, with another time.
        unsafe { next::ppoll(fds, count, time, signals) }
    };
    // SAFETY: the caller's promise.
    unsafe { waits((fds, count), longest, wait) }
}

/// As many as a process may have.
const MOST: c_int = 1 << 20;
const WORD: usize = 64;

/// Waits as `pass`, or as `wait` if files of kbase are to be read: that gets copies of the sets, and a time.
///
/// # Safety
/// `wait` looks at as much of the sets as `pass` does.
unsafe fn selects(
    end: c_int,
    sets: [*mut c_void; 3],
    longest: Option<Duration>,
    pass: impl FnOnce() -> c_int,
    wait: impl Fn([*mut c_void; 3], Duration) -> c_int,
) -> c_int {
    let [read, ..] = sets;
    if DEVICE.load(Ordering::Relaxed) == 0 || read.is_null() {
        return pass();
    }
    let size = (end.clamp(0, MOST) as usize).div_ceil(WORD);
    let copy = |set: *mut c_void| {
        let mut words = vec![0_u64; size];
        let from = set.expose_provenance() as u64;
        let read = set.is_null() || caller::read(from, words.as_mut_bytes()).is_ok();
        read.then_some(words)
    };
    // The kernel refuses what it cannot read.
    let Some([given, write, other]) = keep_errno(|| {
        let [read, write, other] = sets.map(copy);
        Some([read?, write?, other?])
    }) else {
        return pass();
    };
    let wanted = (0..end.clamp(0, MOST)).filter(|fd| bit(&given, *fd));
    let files: Vec<_> = wanted
        .filter_map(|fd| Some((fd, followed_kbase(fd)?)))
        .collect();
    if files.is_empty() {
        return pass();
    }
    let given = [given, write, other];
    let mut results = given.clone();
    let any = || files.iter().any(|(fd, shared)| has_event(*fd, shared));
    let found = in_slices(longest, any, |slice| {
        results.clone_from(&given);
        let mut index = 0;
        let places = results.each_mut().map(|words| {
            index += 1;
            match sets[index - 1].is_null() {
                true => std::ptr::null_mut(),
                false => words.as_mut_ptr().cast(),
            }
        });
        let mut found = wait(places, slice);
        let ready = files.iter().filter(|_| found >= 0);
        let ready: Vec<_> = ready
            .filter(|(fd, shared)| has_event(*fd, shared))
            .collect();
        for (fd, _) in ready {
            found += c_int::from(!bit(&results[0], *fd));
            if let Some(word) = results[0].get_mut(*fd as usize / WORD) {
                *word |= 1 << (*fd as usize % WORD);
            }
        }
        found
    });
    if found < 0 {
        return found;
    }
    for (set, (before, after)) in sets.iter().zip(given.iter().zip(&results)) {
        // A shorter set than stated: the kernel stops at the last file.
        for (index, (_, after)) in
            (before.iter().zip(after).enumerate()).filter(|(_, (before, after))| before != after)
        {
            let place = set.wrapping_byte_add(index * size_of::<u64>());
            if !give_back(place.expose_provenance() as u64, after.as_bytes()) {
                next::set_errno(libc::EFAULT);
                return -1;
            }
        }
    }
    found
}

fn bit(words: &[u64], fd: c_int) -> bool {
    let fd = fd as usize;
    words
        .get(fd / WORD)
        .is_some_and(|word| word >> (fd % WORD) & 1 != 0)
}

/// Writes what is left of the time.
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
    // SAFETY: the caller's time, or none.
    let longest = unsafe { time.as_ref() }.map(|time| {
        let micros = Duration::from_micros(time.tv_usec.max(0) as u64);
        Duration::from_secs(time.tv_sec.max(0) as u64).saturating_add(micros)
    });
    // SAFETY: passed on.
    let pass = || unsafe { next::select(end, read, write, other, time) };
    let started = Instant::now();
    let sliced = Cell::new(false);
    let wait = |[read, write, other]: [*mut c_void; 3], slice: Duration| {
        let mut slice = libc::timeval {
            tv_sec: slice.as_secs() as i64,
            tv_usec: slice.subsec_micros().into(),
        };
        sliced.set(true);
        // SAFETY: copies of the caller's sets, or none.
        unsafe { next::select(end, read, write, other, &mut slice) }
    };
    // SAFETY: the caller's promise.
    let found = unsafe { selects(end, [read, write, other], longest, pass, wait) };
    if let (Some(longest), true) = (longest, sliced.get()) {
        let left = longest.saturating_sub(started.elapsed());
        // SAFETY: the caller's time, which the C library writes too.
        unsafe {
            (*time).tv_sec = left.as_secs() as i64;
            (*time).tv_usec = left.subsec_micros().into();
        }
    }
    found
}

/// # Safety
/// As for `pselect`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pselect(
    end: c_int,
    read: *mut c_void,
    write: *mut c_void,
    other: *mut c_void,
    time: *const libc::timespec,
    signals: *const libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's time, or none.
    let longest = unsafe { time.as_ref() }.map(duration);
    // SAFETY: passed on.
    let pass = || unsafe { next::pselect(end, read, write, other, time, signals) };
    let wait = |[read, write, other]: [*mut c_void; 3], slice: Duration| {
        // SAFETY: copies of the caller's sets, or none.
        unsafe { next::pselect(end, read, write, other, &timespec(slice), signals) }
    };
    // SAFETY: the caller's promise.
    unsafe { selects(end, [read, write, other], longest, pass, wait) }
}

/// The recorder takes events, so a set of files would miss them.
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
    if let Some(shared) = followed_kbase(fd) {
        keep_errno(|| hold(&shared.recorder).refuses(fd, ErrorCode::Waits, fd as u64));
    }
    // SAFETY: passed on.
    unsafe { next::epoll_ctl(epoll, operation, fd, event) }
}

macro_rules! checked {
    ($($name:ident = $of:ident($($argument:ident: $type:ty),*) -> $result:ty, $bytes:expr;)+) => {$(
        /// With a check of buffer sizes.
        ///
        /// # Safety
        /// As for the function without the check.
        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type,)* room: usize) -> $result {
            if $bytes > room {
                std::process::abort();
            }
            // SAFETY: the caller's promise.
            unsafe { $of($($argument),*) }
        }
    )+};
}
checked! {
    __read_chk = read(fd: c_int, to: *mut c_void, size: usize) -> isize, size;
    __pread_chk = pread64(fd: c_int, to: *mut c_void, size: usize, at: i64) -> isize, size;
    __pread64_chk = pread64(fd: c_int, to: *mut c_void, size: usize, at: i64) -> isize, size;
    __poll_chk = poll(fds: *mut libc::pollfd, count: libc::nfds_t, milliseconds: c_int) -> c_int,
        (count as usize).saturating_mul(size_of::<libc::pollfd>());
    __ppoll_chk = ppoll(fds: *mut libc::pollfd, count: libc::nfds_t, time: *const libc::timespec, signals: *const libc::sigset_t) -> c_int,
        (count as usize).saturating_mul(size_of::<libc::pollfd>());
}
