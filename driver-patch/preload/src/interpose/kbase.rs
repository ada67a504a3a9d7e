// SPDX-License-Identifier: MIT OR Apache-2.0
//! For kbase: unmapping frees a region, and the recorder may hold events.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gpureplay_host::caller;
use mali_uapi::kbase::request::{Event, number};
use mali_uapi::panfrost::request::Request;
use zerocopy::IntoBytes;

use super::{KBASE, Shared, UNKNOWN, existing, followed, kind};
use crate::arguments::give_back;
use crate::guard::hold;
use crate::kernel;
use crate::log::say;
use crate::next::{self, keep_errno};

/// 0 until a file of it is followed.
pub(super) static DEVICE: AtomicU64 = AtomicU64::new(0);
/// Longest wait between looks for the recorder's events.
pub(super) const SLICE: Duration = Duration::from_millis(5);
const EVENT: usize = size_of::<Event>();

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

/// No lock for other files: the recorder reads some while it holds one.
pub(super) fn followed_kbase(fd: c_int) -> Option<&'static Shared> {
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

/// `call` takes these addresses away. If recorded regions lie there, no job runs meanwhile.
pub(super) fn vacate<T>(at: *mut c_void, size: usize, call: impl FnOnce() -> T) -> T {
    let (va, size) = (at.expose_provenance() as u64, size as u64);
    let shared = existing().filter(|_| DEVICE.load(Ordering::Relaxed) != 0 && size > 0);
    match shared.filter(|shared| hold(&shared.recorder).has_regions(va, size)) {
        Some(shared) => {
            let _job = hold(&shared.job);
            // Another thread may get the addresses at once.
            let mut recorder = hold(&shared.recorder);
            keep_errno(|| recorder.vacated(va, size));
            call()
        }
        None => call(),
    }
}

/// # Safety
/// As for `munmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munmap(at: *mut c_void, size: usize) -> c_int {
    // SAFETY: passed on.
    vacate(at, size, || unsafe { next::munmap(at, size) })
}

/// # Safety
/// As for `read`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, size: usize) -> isize {
    // SAFETY: passed on.
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
        // SAFETY: one element, which outlives the call.
        unsafe { next::poll(&mut wait, 1, longest.as_millis() as c_int) }
    };
    let place = to.expose_provenance() as u64;
    loop {
        {
            // The running atom is looked at before the app is told of its end.
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

const MOST_PARTS: c_int = 1024;

/// The parts are filled in turn, as if asked for alone.
///
/// # Safety
/// As for `readv`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let followed = followed_kbase(fd).is_some() && (1..=MOST_PARTS).contains(&count);
    let list = match followed {
        true => keep_errno(|| parts_at(parts.expose_provenance() as u64, count as usize)),
        false => None,
    };
    let Some(list) = list else {
        // SAFETY: passed on; a missing list is refused.
        return unsafe { next::readv(fd, parts, count) };
    };
    let mut done = 0;
    for [place, size] in list {
        let to = std::ptr::with_exposed_provenance_mut(place);
        // SAFETY: one of the caller's parts.
        let now = unsafe { read(fd, to, size) };
        if now < 0 {
            return if done > 0 { done } else { now };
        }
        done += now;
        if now as usize != size {
            break;
        }
    }
    done
}

fn parts_at(place: u64, count: usize) -> Option<Vec<[usize; 2]>> {
    let mut words = vec![[0usize; 2]; count];
    caller::read(place, words.as_mut_bytes()).ok()?;
    words.retain(|[_, size]| *size > 0);
    Some(words)
}

macro_rules! placed {
    ($($name:ident = $next:ident($($argument:ident: $type:ty),*) => $of:ident;)+) => {$(
        /// The device has no places.
        ///
        /// # Safety
        /// As for the function of that name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(fd: c_int, $($argument: $type,)* at: i64) -> isize {
            match at >= 0 && followed_kbase(fd).is_some() {
                // SAFETY: the caller's promise.
                true => unsafe { $of(fd, $($argument),*) },
                // SAFETY: passed on.
                false => unsafe { next::$next(fd, $($argument,)* at) },
            }
        }
    )+};
}
placed! {
    pread = pread64(to: *mut c_void, size: usize) => read;
    pread64 = pread64(to: *mut c_void, size: usize) => read;
    preadv = preadv64(parts: *const libc::iovec, count: c_int) => readv;
    preadv64 = preadv64(parts: *const libc::iovec, count: c_int) => readv;
}

macro_rules! placed_with_flags {
    ($($name:ident),+) => {$(
        /// -1 is the file's own place; kbase takes one flag, which changes nothing.
        ///
        /// # Safety
        /// As for `preadv2`.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            fd: c_int,
            parts: *const libc::iovec,
            count: c_int,
            at: i64,
            flags: c_int,
        ) -> isize {
            match at >= -1 && flags & !libc::RWF_HIPRI == 0 && followed_kbase(fd).is_some() {
                // SAFETY: the caller's promise.
                true => unsafe { readv(fd, parts, count) },
                // SAFETY: passed on.
                false => unsafe { next::preadv64v2(fd, parts, count, at, flags) },
            }
        }
    )+};
}
placed_with_flags!(preadv2, preadv64v2);
