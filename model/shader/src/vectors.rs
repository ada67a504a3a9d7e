// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of vector units: only here this crate asks which are in use.
//!
//! Functions that profit have several versions, and [`choose!`] takes the best. Results are the same. A version for
//! AVX-512 may be written by hand, where compilers do worse.

/// The version for the units in use: `choose!(portable: x, avx2: y, avx512: z)`. A missing one is replaced by the
/// next lower. Those for AVX2 and AVX-512 may call or name functions that are unsafe only because they are compiled
/// for these units.
macro_rules! choose {
    (portable: $portable:expr $(, avx2: $avx2:expr)? $(, avx512: $avx512:expr)? $(,)?) => {{
        #[cfg(target_arch = "x86_64")]
        let chosen = 'chosen: {
            let used = mali_memory::Vectors::in_use();
            $(if used == mali_memory::Vectors::Avx512 {
                // SAFETY: the host has the units, and nothing else is asked for.
                break 'chosen unsafe { $avx512 };
            })?
            $(if used >= mali_memory::Vectors::Avx2 {
                // SAFETY: the host has the units, and nothing else is asked for.
                break 'chosen unsafe { $avx2 };
            })?
            $portable
        };
        #[cfg(not(target_arch = "x86_64"))]
        let chosen = $portable;
        chosen
    }};
}

/// Whether `f32::mul_add` in a loop is an instruction, not a slow library call.
#[allow(unused_unsafe, unsafe_code)]
pub(crate) fn has_fused_multiply_add() -> bool {
    choose!(portable: cfg!(target_arch = "aarch64"), avx2: true)
}

/// Whether several multiply-adds can execute at once.
#[allow(unused_unsafe, unsafe_code)]
pub(crate) fn accumulates() -> bool {
    choose!(portable: false, avx512: true)
}
