// SPDX-License-Identifier: MIT OR Apache-2.0
//! The next definition of each exported function, in the C library or another preloaded one.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicUsize::new(0),
        }
    }

    fn address(&self) -> usize {
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: a C string; RTLD_NEXT is a handle.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) }.expose_provenance();
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

fn fail() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

pub(crate) fn errno() -> c_int {
    // SAFETY: the C library's pointer is valid for the thread.
    unsafe { libc::__errno_location().read() }
}

pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { libc::__errno_location().write(value) }
}

/// The recorder's own calls change it.
pub(crate) fn keep_errno<T>(work: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = work();
    set_errno(before);
    result
}

macro_rules! next {
    ($($(#[$meta:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $symbol:literal, $absent:expr;)+) => {
        $(
            $(#[$meta])*
            /// # Safety
            /// As for the function of that name.
            pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
                static NEXT: Next = Next::new($symbol);
                let address = NEXT.address();
                if address == 0 {
                    return $absent;
                }
                type Function = unsafe extern "C" fn($($type),*) -> $result;
                // SAFETY: the address of the function with this name and type.
                let function = unsafe { std::mem::transmute::<*const c_void, Function>(std::ptr::with_exposed_provenance(address)) };
                // SAFETY: the caller's promise.
                unsafe { function($($argument),*) }
            }
        )+
    };
}

next! {
    // All requests pass the third argument as one word.
    ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int = c"ioctl", fail();
    mmap64(at: *mut c_void, size: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void = c"mmap64", libc::MAP_FAILED;
    munmap(at: *mut c_void, size: usize) -> c_int = c"munmap", fail();
    read(fd: c_int, to: *mut c_void, size: usize) -> isize = c"read", fail() as isize;
    pread64(fd: c_int, to: *mut c_void, size: usize, at: i64) -> isize = c"pread64", fail() as isize;
    readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize = c"readv", fail() as isize;
    preadv64(fd: c_int, parts: *const libc::iovec, count: c_int, at: i64) -> isize = c"preadv64", fail() as isize;
    preadv64v2(fd: c_int, parts: *const libc::iovec, count: c_int, at: i64, flags: c_int) -> isize = c"preadv64v2", fail() as isize;
    poll(fds: *mut libc::pollfd, count: libc::nfds_t, milliseconds: c_int) -> c_int = c"poll", fail();
    ppoll(fds: *mut libc::pollfd, count: libc::nfds_t, time: *const libc::timespec, signals: *const libc::sigset_t) -> c_int = c"ppoll", fail();
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut c_void) -> c_int = c"epoll_ctl", fail();
    select(end: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, time: *mut libc::timeval) -> c_int = c"select", fail();
    pselect(end: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, time: *const libc::timespec, signals: *const libc::sigset_t) -> c_int = c"pselect", fail();
    close(fd: c_int) -> c_int = c"close", fail();
    dup2(from: c_int, to: c_int) -> c_int = c"dup2", fail();
    dup3(from: c_int, to: c_int, flags: c_int) -> c_int = c"dup3", fail();
    close_range(first: u32, last: u32, flags: c_int) -> c_int = c"close_range", fail();
}
