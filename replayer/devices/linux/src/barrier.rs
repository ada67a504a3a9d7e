// SPDX-License-Identifier: MIT OR Apache-2.0
//! Order between memory and device registers, as Linux's `readl` and `writel` have it on each architecture.
//!
//! A fence of the language orders what processors of the inner shareable domain see. A GPU is an observer of the outer
//! shareable domain: on 64-bit Arm it needs `dmb osh`.

/// What was written to memory is visible to a device before a register that is written next.
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

/// What is read from memory next is at least as new as a register that was read before.
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
