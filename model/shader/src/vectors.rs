// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of vector units, asked only here.
//!
//! [`choose!`] takes the best version of a function; results are the same. AVX-512 versions may be by hand, where
//! compilers do worse.

/// `choose!(portable: x, avx2: y, avx512: z)`; the next lower one replaces a missing one. Those for AVX2 and
/// AVX-512 may use functions that are unsafe only because of these units.
macro_rules! choose {
    (portable: $portable:expr $(, avx2: $avx2:expr)? $(, avx512: $avx512:expr)? $(,)?) => {{
        #[cfg(target_arch = "x86_64")]
        let chosen = 'chosen: {
            let used = gpureplay_memory::Vectors::in_use();
            $(if used == gpureplay_memory::Vectors::Avx512 {
                // SAFETY: the host has the units, and nothing else is asked for.
                break 'chosen unsafe { $avx512 };
            })?
            $(if used >= gpureplay_memory::Vectors::Avx2 {
                // SAFETY: as above.
                break 'chosen unsafe { $avx2 };
            })?
            $portable
        };
        #[cfg(not(target_arch = "x86_64"))]
        let chosen = $portable;
        chosen
    }};
}

#[allow(unused_unsafe, unsafe_code)]
pub(crate) fn has_fused_multiply_add() -> bool {
    choose!(portable: cfg!(target_arch = "aarch64"), avx2: true)
}

#[allow(unused_unsafe, unsafe_code)]
pub(crate) fn accumulates() -> bool {
    choose!(portable: false, avx512: true)
}
