// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops over lanes, compiled for the vector units that the host turns out to have.
//!
//! A loop that is compiled for the lowest common processor may not use AVX2 or fused multiply-add. Each function here
//! exists twice, and the better one that the host can run is chosen. Results are the same either way.
#![allow(unsafe_code)]

use super::rows::{LANES, Row};

/// Whether the host has AVX2 and FMA. The standard library remembers the answer.
#[inline(always)]
fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Whether `f32::mul_add` in a loop over lanes is an instruction and not a slow library call.
pub(crate) fn has_fused_multiply_add() -> bool {
    has_avx2() || cfg!(target_arch = "aarch64")
}

/// Defines a function `out[i] = f(sources[..][i])` for the first `lanes` lanes.
macro_rules! loop_over_lanes {
    ($name:ident, $avx2:ident, $slow:ident, $body:ident, $f:ident($($source:ident: $number:ty),+)) => {
        /// `out[i] = f(...)` for the first `lanes` lanes. Lanes after that may change as well.
        #[inline(always)]
        pub(crate) fn $name(
            out: &mut Row,
            $($source: &Row,)+
            lanes: usize,
            f: impl Fn($($number),+) -> u32,
        ) {
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the host has the features that the function is compiled for.
                unsafe { $avx2(out, $($source,)+ lanes, f) };
            } else {
                $slow(out, $($source,)+ lanes, &f);
            }
            #[cfg(not(target_arch = "x86_64"))]
            $body(out, $($source,)+ lanes, f);
        }

        /// For the few processors without AVX2: one loop for all functions, so that the others need not be compiled
        /// twice.
        #[cfg(target_arch = "x86_64")]
        #[cold]
        fn $slow(out: &mut Row, $($source: &Row,)+ lanes: usize, f: &dyn Fn($($number),+) -> u32) {
            $body(out, $($source,)+ lanes, f);
        }

        // The rows are parameters of a function that is not inlined, which tells the compiler that they are apart.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $avx2(out: &mut Row, $($source: &Row,)+ lanes: usize, f: impl Fn($($number),+) -> u32) {
            $body(out, $($source,)+ lanes, f);
        }

        #[inline(always)]
        fn $body(out: &mut Row, $($source: &Row,)+ lanes: usize, f: impl Fn($($number),+) -> u32) {
            let lanes = lanes.min(LANES);
            let out = &mut out.0[..lanes];
            $(let $source = &$source.0[..lanes];)+
            for i in 0..lanes {
                out[i] = f($($source[i]),+);
            }
        }
    };
}

loop_over_lanes!(map1, map1_avx2, map1_slow, map1_body, f(a: u32));
loop_over_lanes!(map2, map2_avx2, map2_slow, map2_body, f(a: u32, b: u32));
loop_over_lanes!(map3, map3_avx2, map3_slow, map3_body, f(a: u32, b: u32, c: u32));
loop_over_lanes!(map4, map4_avx2, map4_slow, map4_body, f(a: u32, b: u32, c: u32, d: u32));

/// Lanes whose addresses are classified together.
pub(crate) const GROUP: usize = 8;

/// What addresses have in common; bit n is about lanes 8 n to 8 n + 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Common {
    /// The addresses are the same as that of the group's first lane.
    pub(crate) same: u32,
    /// The addresses are in the page of the group's first lane, are aligned, and no access crosses the page's end.
    pub(crate) page: u32,
    /// The groups' first addresses are all the same, and so are their pages.
    pub(crate) first: (bool, bool),
}

/// Classifies the 64-bit addresses that two rows hold, for accesses of `bytes` bytes that should be aligned to `align`
/// (a power of two).
#[inline(always)]
pub(crate) fn common(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Common {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the host has the features that the function is compiled for.
        return unsafe { common_avx2(low, high, lanes, bytes, align) };
    }
    common_body(low, high, lanes, bytes, align)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn common_avx2(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Common {
    common_body(low, high, lanes, bytes, align)
}

#[inline(always)]
fn common_body(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Common {
    const OFFSET: u32 = 4095;
    let mut common = Common::default();
    let (lows, highs) = (low.0.as_chunks::<GROUP>().0, high.0.as_chunks::<GROUP>().0);
    let (first_low, first_high) = (low.0[0], high.0[0]);
    let mut firsts = 0;
    let groups = lanes.min(LANES) / GROUP;
    for (group, (lows, highs)) in lows.iter().zip(highs).take(groups).enumerate() {
        let (mut low_differs, mut high_differs, mut misaligned, mut crosses) = (0, 0, 0, 0);
        for lane in 0..GROUP {
            low_differs |= lows[lane] ^ lows[0];
            high_differs |= highs[lane] ^ highs[0];
            misaligned |= lows[lane];
            // The top bit is set if the offset is above the last that fits.
            crosses |= (OFFSET + 1 - bytes).wrapping_sub(lows[lane] & OFFSET);
        }
        let same = low_differs | high_differs == 0;
        let page = low_differs & !OFFSET | high_differs == 0
            && misaligned & (align - 1) == 0
            && crosses >> 31 == 0;
        common.same |= u32::from(same) << group;
        common.page |= u32::from(page) << group;
        firsts |= lows[0] ^ first_low;
        if highs[0] != first_high {
            firsts = u32::MAX;
        }
    }
    common.first = (firsts == 0, firsts & !OFFSET == 0);
    common
}
