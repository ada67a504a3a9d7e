// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels' times from CUPTI.
//!
//! Offsets: `CUpti_ActivityKernel9` in `cupti_activity.h`; newer ones only grow at the end.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::c_library::look_up;
use crate::durations::{Key, ran};
use crate::say::say;
use crate::settings::{Mode, settings};
use crate::tally;

/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`.
const KERNEL: u32 = 10;
const START: usize = 16;
const END: usize = 24;
const GRID: usize = 52;
const BLOCK: usize = 64;
const NAME: usize = 104;

const BUFFER_WORDS: usize = 1 << 17;

type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> i32;
type Flush = unsafe extern "C" fn(u32) -> i32;
type Want = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Done = unsafe extern "C" fn(u64, u32, *mut u8, usize, usize);
type Register = unsafe extern "C" fn(Want, Done) -> i32;
type Enable = unsafe extern "C" fn(u32) -> i32;

struct Cupti {
    next: Next,
    flush: Flush,
}

static CUPTI: OnceLock<Cupti> = OnceLock::new();
static ACTIVE: AtomicBool = AtomicBool::new(false);

pub(crate) fn start(path: &Path) {
    match open(path) {
        Ok(()) => ACTIVE.store(true, Ordering::Relaxed),
        Err(reason) => {
            let instead = match settings().mode {
                Mode::Durations(_) => "; times are those of events",
                _ => "",
            };
            say(&format!("{}: {reason}{instead}", path.display()));
        }
    }
}

pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

fn open(path: &Path) -> Result<(), String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "a zero byte in its name")?;
    // SAFETY: a C string and a flag.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) } as usize;
    if library == 0 {
        return Err("CUPTI cannot be loaded".into());
    }
    let address = |name: &CStr| match look_up(library, name) {
        0 => Err(format!("has no function {}", name.to_string_lossy())),
        address => Ok(address),
    };
    // SAFETY: addresses of CUPTI's functions, signatures of cupti_activity.h.
    let (next, flush, register, enable) = unsafe {
        (
            std::mem::transmute::<usize, Next>(address(c"cuptiActivityGetNextRecord")?),
            std::mem::transmute::<usize, Flush>(address(c"cuptiActivityFlushAll")?),
            std::mem::transmute::<usize, Register>(address(c"cuptiActivityRegisterCallbacks")?),
            std::mem::transmute::<usize, Enable>(address(c"cuptiActivityEnable")?),
        )
    };
    if CUPTI.set(Cupti { next, flush }).is_err() {
        return Ok(());
    }
    // SAFETY: our callbacks live as long as the process.
    match unsafe { (register(want, done), enable(KERNEL)) } {
        (0, 0) => Ok(()),
        (registered, enabled) => Err(format!("CUPTI refuses: {registered}, {enabled}")),
    }
}

pub(crate) fn finish() {
    if let Some(cupti) = CUPTI.get() {
        // SAFETY: CUPTI's own function; 1 forces buffers out that are not full.
        unsafe { (cupti.flush)(1) };
    }
}

unsafe extern "C" fn want(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let words = vec![0u64; BUFFER_WORDS].into_boxed_slice();
    // SAFETY: CUPTI passes three valid pointers; `done` takes the buffer back.
    unsafe {
        *buffer = Box::into_raw(words).cast();
        *size = BUFFER_WORDS * 8;
        *most = 0;
    }
}

unsafe extern "C" fn done(
    _context: u64,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    let Some(cupti) = CUPTI.get() else { return };
    let mut record: *mut u8 = std::ptr::null_mut();
    // SAFETY: CUPTI hands over the buffer and walks its records, aligned to 8 bytes.
    unsafe {
        while (cupti.next)(buffer, valid, &raw mut record) == 0 {
            if *record.cast::<u32>() != KERNEL {
                continue;
            }
            let three =
                |offset: usize| [0, 4, 8].map(|step| *record.add(offset + step).cast::<u32>());
            let time = |offset: usize| *record.add(offset).cast::<u64>();
            let name = *record.add(NAME).cast::<*const c_char>();
            if name.is_null() {
                continue;
            }
            let kernel = CStr::from_ptr(name).to_string_lossy().into_owned();
            if !settings().wants(&kernel) {
                continue;
            }
            tally::ran(&kernel);
            let nanoseconds = time(END).saturating_sub(time(START));
            let key = Key {
                kernel,
                grid: three(GRID),
                block: three(BLOCK),
                side: None,
            };
            #[expect(clippy::cast_precision_loss, reason = "no kernel runs for 104 days")]
            ran(key, nanoseconds as f64 / 1e3);
        }
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            buffer.cast::<u64>(),
            BUFFER_WORDS,
        )));
    }
}
