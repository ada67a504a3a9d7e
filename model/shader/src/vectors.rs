// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of vector units: the one place of this crate that asks which of the host's are in use.
//!
//! A function that profits from them exists in several versions, and [`choose!`] takes the best one that may be used. Results
//! are the same with each. For AVX-512 a version may be written by hand, where compilers make less of a loop.

/// The value of the version for the vector units in use: `choose!(portable: x, avx2: y, avx512: z)`. A version that is missing is
/// replaced by the next lower one. Those for AVX2 and AVX-512 may call, or name, functions that are unsafe only because they
/// are compiled for these units.
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

/// Whether `f32::mul_add` in a loop over lanes is an instruction and not a slow library call.
#[allow(unused_unsafe, unsafe_code)]
pub(crate) fn has_fused_multiply_add() -> bool {
    choose!(portable: cfg!(target_arch = "aarch64"), avx2: true)
}

/// Whether the host has a way to execute several multiply-adds at once.
#[allow(unused_unsafe, unsafe_code)]
pub(crate) fn accumulates() -> bool {
    choose!(portable: false, avx512: true)
}
