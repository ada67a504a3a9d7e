// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code for the vector units that the host turns out to have.
//!
//! A loop that is compiled for the lowest common processor may not use AVX2 or fused multiply-add. [`vectorised`] runs
//! a closure inside a function that is compiled for them, when the host has them. Results are the same either way.
#![allow(unsafe_code)]

/// Calls `work`, compiled for the best vector unit that the host has. `work` must be `#[inline(always)]` all through.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the host has the features that the function is compiled for.
        return unsafe { with_avx2(work) };
    }
    work()
}

/// # Safety
///
/// The host must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Whether `f32::mul_add` inside [`vectorised`] is an instruction and not a slow library call.
#[inline]
pub(crate) fn has_fused_multiply_add() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}
