// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders memory and device registers as Linux's `readl` and `writel`.
//!
//! A language fence orders the inner shareable domain; a GPU observes the outer one: 64-bit Arm needs `dmb osh`.

/// The device sees earlier memory writes before its next register write.
#[inline]
pub(crate) fn before_register_write() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier changes no register and no memory; without `nomem` the compiler moves no access across it.
    unsafe {
        core::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Later memory reads are no older than the last register read.
#[inline]
pub(crate) fn after_register_read() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `before_register_write`.
    unsafe {
        core::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
