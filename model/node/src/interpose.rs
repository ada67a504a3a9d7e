// SPDX-License-Identifier: MIT OR Apache-2.0
//! C functions that a program's calls reach first; others' are passed on.
//!
//! An earlier preloaded library gets here by `dlsym(RTLD_NEXT, …)`. A thread inside the node is marked, and its
//! calls go straight on.

// For the linker, not a crate.
#![allow(unreachable_pub)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use mali_model::Product;

use crate::errno::{Errno, Result};
use crate::next::Next;
use crate::node::Node;

const PATH: &CStr = c"/dev/dri/renderD128";
const VARIABLE: &str = "GPUREPLAY_NODE_GPU";
const DEFAULT: &str = "g52";

/// What is stored lives for ever.
static NODE: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());
static OPENED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Inside;

impl Inside {
    fn enter() -> Option<Self> {
        let inside = INSIDE.try_with(|inside| inside.replace(true));
        // Else a drop would end the outer one.
        (inside == Ok(false)).then(|| Inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

fn opened() -> Option<(&'static Node, Inside)> {
    if !OPENED.load(Ordering::Acquire) {
        return None;
    }
    let inside = Inside::enter()?;
    Some((made()?, inside))
}

fn made() -> Option<&'static Node> {
    // SAFETY: only pointers to what lives for ever are stored.
    unsafe { NODE.load(Ordering::Acquire).as_ref() }
}

/// The child of `fork` has the memory files, no threads: it gets a node of its own.
extern "C" fn forked() {
    OPENED.store(false, Ordering::Release);
    NODE.store(ptr::null_mut(), Ordering::Release);
}

fn node() -> Result<&'static Node> {
    if let Some(node) = made() {
        return Ok(node);
    }
    let name = std::env::var(VARIABLE).unwrap_or_else(|_| DEFAULT.to_owned());
    // Mesa does not know our G71's product number.
    let known = if name.eq_ignore_ascii_case("g71") {
        "g71-mesa"
    } else {
        name.as_str()
    };
    let Some(product) = Product::by_name(known) else {
        let names: Vec<_> = Product::names().collect();
        eprintln!(
            "gpureplay node: {VARIABLE}: no GPU {name}; GPUs and boards are: {}",
            names.join(", ")
        );
        return Err(Errno(libc::ENODEV));
    };
    let node = Node::new(product)
        .inspect_err(|error| eprintln!("gpureplay node: no memory file (error {})", error.0))?;
    // SAFETY: the handler takes no lock and allocates nothing.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    // Without a lock: another thread might hold it at a fork.
    let new = Box::into_raw(Box::new(node));
    let stored = NODE.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    if stored.is_err() {
        // SAFETY: nobody else has seen it: another thread was first.
        drop(unsafe { Box::from_raw(new) });
    }
    made().ok_or(Errno(libc::ENODEV))
}

fn answer(result: Result<c_int>) -> c_int {
    result.unwrap_or_else(|error| {
        // SAFETY: `errno` is this thread's.
        unsafe { *libc::__errno_location() = error.0 };
        -1
    })
}

fn keeping_errno<T>(step: impl FnOnce() -> T) -> T {
    // SAFETY: as above.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let value = step();
        *place = before;
        value
    }
}

/// # Safety
/// The path is null or a C string.
unsafe fn open_node(path: *const c_char, flags: c_int) -> Option<c_int> {
    // SAFETY: as the caller says.
    if path.is_null() || unsafe { CStr::from_ptr(path) } != PATH {
        return None;
    }
    let _inside = Inside::enter()?;
    let opened = keeping_errno(|| node().and_then(|node| node.open(flags & libc::O_CLOEXEC != 0)));
    OPENED.store(true, Ordering::Release);
    Some(answer(opened))
}

type Open = unsafe extern "C" fn(*const c_char, c_int, libc::mode_t) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, libc::mode_t) -> c_int;
type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;
type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
type Close = unsafe extern "C" fn(c_int) -> c_int;

macro_rules! next {
    ($name:literal: $kind:ty) => {{
        static NEXT: Next = Next::new($name);
        let address = NEXT.address();
        // SAFETY: the C library's function of this name has this type; an `Option` of a function has room for null.
        unsafe { std::mem::transmute::<*mut c_void, Option<$kind>>(address) }
    }};
}

macro_rules! open {
    ($($name:ident, $text:literal);* $(;)?) => {$(
        /// Acts as the C library's function.
        ///
        /// # Safety
        /// As the C library's. The mode is passed on even if not given.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
            // SAFETY: the caller gives a C string.
            if let Some(fd) = unsafe { open_node(path, flags) } {
                return fd;
            }
            match next!($text: Open) {
                // SAFETY: as we were called.
                Some(next) => unsafe { next(path, flags, mode) },
                None => answer(Err(Errno(libc::ENOSYS))),
            }
        }
    )*};
}

macro_rules! open_at {
    ($($name:ident, $text:literal);* $(;)?) => {$(
        /// Acts as the C library's function.
        ///
        /// # Safety
        /// As the C library's. The mode is passed on even if not given.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(folder: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
            // SAFETY: the caller gives a C string.
            if let Some(fd) = unsafe { open_node(path, flags) } {
                return fd;
            }
            match next!($text: OpenAt) {
                // SAFETY: as we were called.
                Some(next) => unsafe { next(folder, path, flags, mode) },
                None => answer(Err(Errno(libc::ENOSYS))),
            }
        }
    )*};
}

open! {
    open, c"open";
    open64, c"open64";
    // `open` of programs built with fortification.
    __open_2, c"__open_2";
    __open64_2, c"__open64_2";
}

open_at! {
    openat, c"openat";
    openat64, c"openat64";
}

/// Acts as the C library's function.
///
/// # Safety
/// As the C library's: the request determines the argument.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // 32 bits; some callers extend the sign.
    let number = request as u32;
    if matches!((number >> 8) as u8, b'd' | b'>')
        && let Some((node, _inside)) = opened()
    {
        let done = keeping_errno(|| node.ioctl(fd, number, argument.expose_provenance() as u64));
        if let Some(done) = done {
            return answer(done);
        }
    }
    match next!(c"ioctl": Ioctl) {
        // SAFETY: as we were called.
        Some(next) => unsafe { next(fd, request, argument) },
        None => answer(Err(Errno(libc::ENOSYS))),
    }
}

fn map_node(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> Option<*mut c_void> {
    if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 {
        return None;
    }
    let (node, _inside) = opened()?;
    let mapped = keeping_errno(|| node.mapped(fd, length, offset))?;
    // The kernel refuses a private mapping, too.
    let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
    let mapped = mapped.and_then(|mapped| {
        if shared {
            Ok(mapped)
        } else {
            Err(Errno::INVALID)
        }
    });
    match mapped {
        Ok((file, offset)) => {
            use std::os::fd::AsRawFd;
            // SAFETY: the app's own mapping, of a file of ours in place of its own.
            let place = unsafe {
                libc::syscall(
                    libc::SYS_mmap,
                    address,
                    length,
                    c_long::from(protection),
                    c_long::from(flags),
                    c_long::from(file.as_raw_fd()),
                    offset,
                )
            };
            Some(std::ptr::with_exposed_provenance_mut(place as usize))
        }
        Err(error) => {
            answer(Err(error));
            Some(libc::MAP_FAILED)
        }
    }
}

/// Both have 64-bit offsets.
macro_rules! mmap {
    ($($name:ident, $text:literal);* $(;)?) => {$(
        /// Acts as the C library's function.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            address: *mut c_void,
            length: usize,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: i64,
        ) -> *mut c_void {
            if let Some(place) = map_node(address, length, protection, flags, fd, offset) {
                return place;
            }
            match next!($text: Mmap) {
                // SAFETY: as we were called.
                Some(next) => unsafe { next(address, length, protection, flags, fd, offset) },
                None => libc::MAP_FAILED,
            }
        }
    )*};
}

mmap! {
    mmap, c"mmap";
    mmap64, c"mmap64";
}

/// Acts as the C library's function.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let forget = opened().and_then(|(node, _inside)| keeping_errno(|| node.closing(fd)));
    let closed = match next!(c"close": Close) {
        // SAFETY: as we were called.
        Some(next) => unsafe { next(fd) },
        None => answer(Err(Errno(libc::ENOSYS))),
    };
    if let Some(forget) = forget
        && let Some((node, _inside)) = opened()
    {
        keeping_errno(|| forget(node));
    }
    closed
}
