// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of words between shared memory and the program's own, in the widest accesses that keep words whole.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Words of a vector.
#[cfg(target_arch = "x86_64")]
const VECTOR: usize = 4;

/// Copies a vector. The compiler does not look into assembler code, so that shared memory is as good as behind an
/// atomic; the processor does not split an aligned word of a vector.
///
/// # Safety
///
/// 16 bytes are readable at `from` and writable at `to`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy_vector(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        std::arch::asm!(
            "movups {vector}, [{from}]",
            "movups [{to}], {vector}",
            vector = out(xmm_reg) _,
            from = in(reg) from,
            to = in(reg) to,
            options(nostack, preserves_flags),
        );
    }
}

/// Reads words from shared memory.
///
/// # Safety
///
/// `from` is aligned to 4 and leads to as many words as `to` has, which stay readable meanwhile. Nobody has a plain
/// reference to them.
#[inline(always)]
pub(crate) unsafe fn load(from: *const u8, to: &mut [u32]) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    while to.len() - done >= VECTOR {
        // SAFETY: there are that many words on both sides.
        unsafe { copy_vector(from.add(done * 4), to.as_mut_ptr().add(done).cast()) };
        done += VECTOR;
    }
    for (at, to) in to.iter_mut().enumerate().skip(done) {
        // SAFETY: the caller's promise.
        let word = unsafe { &*from.add(at * 4).cast::<AtomicU32>() };
        *to = u32::from_le(word.load(Relaxed));
    }
}

/// Writes words to shared memory.
///
/// # Safety
///
/// As for [`load`], with `to` writable.
#[inline(always)]
pub(crate) unsafe fn store(from: &[u32], to: *mut u8) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    while from.len() - done >= VECTOR {
        // SAFETY: there are that many words on both sides.
        unsafe { copy_vector(from.as_ptr().add(done).cast(), to.add(done * 4)) };
        done += VECTOR;
    }
    for (at, from) in from.iter().enumerate().skip(done) {
        // SAFETY: the caller's promise.
        let word = unsafe { &*to.add(at * 4).cast::<AtomicU32>() };
        word.store(from.to_le(), Relaxed);
    }
}
