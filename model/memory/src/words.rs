// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of words from and to shared memory.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[cfg(target_arch = "x86_64")]
use crate::Vectors;

#[cfg(target_arch = "x86_64")]
const VECTOR: usize = 4;

/// The compiler does not see through assembler, so it is like an atomic access; aligned words are not split.
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

#[cfg(target_arch = "x86_64")]
const WIDEST: usize = 16;

/// 64 bytes each; returns words.
///
/// # Safety
///
/// So many words are readable at `from` and writable at `to`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn copy_widest(from: *const u8, to: *mut u8, words: usize) -> usize {
    let mut done = 0;
    while words - done >= WIDEST {
        // SAFETY: the caller's promise.
        unsafe {
            std::arch::asm!(
                "vmovdqu32 {vector}, [{from}]",
                "vmovdqu32 [{to}], {vector}",
                vector = out(zmm_reg) _,
                from = in(reg) from.add(done * 4),
                to = in(reg) to.add(done * 4),
                options(nostack, preserves_flags),
            );
        }
        done += WIDEST;
    }
    done
}

/// Returns how many.
///
/// # Safety
///
/// As for [`copy_widest`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, words: usize) -> usize {
    let mut done = 0;
    if words >= WIDEST && Vectors::in_use() == Vectors::Avx512 {
        // SAFETY: the host has the feature; the rest is the caller's promise.
        done = unsafe { copy_widest(from, to, words) };
    }
    while words - done >= VECTOR {
        // SAFETY: both sides have that many words.
        unsafe { copy_vector(from.add(done * 4), to.add(done * 4)) };
        done += VECTOR;
    }
    done
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy(_: *const u8, _: *mut u8, _: usize) -> usize {
    0
}

/// # Safety
///
/// `from` is aligned to 4, and `to.len()` words stay readable. No plain reference to them exists.
#[inline(always)]
pub(crate) unsafe fn load(from: *const u8, to: &mut [u32]) {
    // SAFETY: both sides have that many words.
    let done = unsafe { copy(from, to.as_mut_ptr().cast(), to.len()) };
    for (at, to) in to.iter_mut().enumerate().skip(done) {
        // SAFETY: the caller's promise.
        let word = unsafe { &*from.add(at * 4).cast::<AtomicU32>() };
        *to = u32::from_le(word.load(Relaxed));
    }
}

/// # Safety
///
/// As for [`load`], with `to` writable.
#[inline(always)]
pub(crate) unsafe fn store(from: &[u32], to: *mut u8) {
    // SAFETY: as above.
    let done = unsafe { copy(from.as_ptr().cast(), to, from.len()) };
    for (at, from) in from.iter().enumerate().skip(done) {
        // SAFETY: the caller's promise.
        let word = unsafe { &*to.add(at * 4).cast::<AtomicU32>() };
        word.store(from.to_le(), Relaxed);
    }
}
