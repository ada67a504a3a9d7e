// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts heap, allocations, and steps.
//!
//! Steps are entered blocks of machine code. `cargo xtask cost` builds all crates so that each block calls a function
//! here; other builds count none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// The counter must call nothing that is itself counted.
static mut STEPS: u64 = 0;
static mut LAST_STEP: u64 = u64::MAX;
static LAST_BYTE: AtomicUsize = AtomicUsize::new(usize::MAX);

// SAFETY: all calls go to the system's allocator as they came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        CALLS.fetch_add(1, Relaxed);
        if now > LAST_BYTE.load(Relaxed) {
            stop("more memory than any budget");
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        CALLS.fetch_add(1, Relaxed);
        if now > LAST_BYTE.load(Relaxed) {
            stop("more memory than any budget");
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Per object file; the guards are unused.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc_guard_init(_: *mut u32, _: *mut u32) {}

/// Per block. The compiler does not instrument functions of this name.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc_guard(_: *mut u32) {
    // SAFETY: words only read and written whole. Threads that count at the same time lose steps.
    unsafe {
        if STEPS == LAST_STEP {
            stop("more steps than any budget");
        }
        STEPS += 1;
    }
}

fn steps() -> u64 {
    // SAFETY: as above.
    unsafe { STEPS }
}

fn stop_at(step: u64) {
    // SAFETY: as above.
    unsafe { LAST_STEP = step }
}

/// Ends the process: the work would not come back soon.
#[cold]
fn stop(why: &str) -> ! {
    LAST_BYTE.store(usize::MAX, Relaxed);
    stop_at(u64::MAX);
    eprintln!("stopped: {why}");
    std::process::abort()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Bytes at once.
    pub(crate) held: u64,
    pub(crate) calls: u64,
    /// Blocks, or 0 if they are not counted.
    pub(crate) steps: u64,
    /// Bytes.
    pub(crate) written: u64,
}

/// Ends the process beyond `bytes` or at `most` steps.
pub(crate) fn counted(bytes: usize, most: u64, work: impl FnOnce()) -> Cost {
    let (before, calls, first) = (NOW.load(Relaxed), CALLS.load(Relaxed), steps());
    MOST.store(before, Relaxed);
    LAST_BYTE.store(before.saturating_add(bytes), Relaxed);
    stop_at(first.saturating_add(most));
    work();
    stop_at(u64::MAX);
    LAST_BYTE.store(usize::MAX, Relaxed);
    Cost {
        held: MOST.load(Relaxed).saturating_sub(before) as u64,
        calls: (CALLS.load(Relaxed) - calls) as u64,
        steps: steps().wrapping_sub(first),
        written: 0,
    }
}

pub(crate) fn counts_steps() -> bool {
    steps() > 0
}
