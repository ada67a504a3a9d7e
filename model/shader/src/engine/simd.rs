// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops over lanes, compiled for the vector units that the host turns out to have.
//!
//! A loop that is compiled for the lowest common processor may not use AVX2 or fused multiply-add. Each function here
//! exists several times, and the best one that the host can run is chosen. Results are the same either way.
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

/// Whether the host has AVX-512. Loops are compiled for it in optimised builds only: it is a third copy of each.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[inline(always)]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
}

/// Whether `f32::mul_add` in a loop over lanes is an instruction and not a slow library call.
pub(crate) fn has_fused_multiply_add() -> bool {
    has_avx2() || cfg!(target_arch = "aarch64")
}

/// Defines a function `out[i] = f(sources[..][i])` for the first `lanes` lanes.
macro_rules! loop_over_lanes {
    ($name:ident, $avx512:ident, $avx2:ident, $slow:ident, $body:ident, $f:ident($($source:ident: $number:ty),+)) => {
        /// `out[i] = f(...)` for the first `lanes` lanes. Lanes after that may change as well.
        #[inline(always)]
        pub(crate) fn $name(
            out: &mut Row,
            $($source: &Row,)+
            lanes: usize,
            f: impl Fn($($number),+) -> u32,
        ) {
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            if has_avx512() {
                // SAFETY: the host has the features that the function is compiled for.
                return unsafe { $avx512(out, $($source,)+ lanes, f) };
            }
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

        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $avx512(out: &mut Row, $($source: &Row,)+ lanes: usize, f: impl Fn($($number),+) -> u32) {
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

loop_over_lanes!(map1, map1_avx512, map1_avx2, map1_slow, map1_body, f(a: u32));
loop_over_lanes!(map2, map2_avx512, map2_avx2, map2_slow, map2_body, f(a: u32, b: u32));
loop_over_lanes!(map3, map3_avx512, map3_avx2, map3_slow, map3_body, f(a: u32, b: u32, c: u32));
loop_over_lanes!(map4, map4_avx512, map4_avx2, map4_slow, map4_body, f(a: u32, b: u32, c: u32, d: u32));

/// Lanes whose addresses are classified together.
pub(crate) const GROUP: usize = 8;

/// What the addresses of a whole batch have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// They are all the same.
    pub(crate) same: bool,
    /// They are in one page, are aligned, and no access crosses the page's end.
    pub(crate) page: bool,
    /// Each group has the addresses of the first.
    pub(crate) repeat: bool,
    /// The lanes of each group have the same address.
    pub(crate) flat: bool,
}

/// Classifies the 64-bit addresses that two rows hold, for accesses of `bytes` bytes that should be aligned to `align`
/// (a power of two).
#[inline(always)]
pub(crate) fn pattern(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Pattern {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the host has the features that the function is compiled for.
        return unsafe { pattern_avx2(low, high, lanes, bytes, align) };
    }
    pattern_body(low, high, lanes, bytes, align)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn pattern_avx2(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Pattern {
    pattern_body(low, high, lanes, bytes, align)
}

#[inline(always)]
fn pattern_body(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Pattern {
    let (lows, highs) = (low.0.as_chunks::<GROUP>().0, high.0.as_chunks::<GROUP>().0);
    let groups = lanes.min(LANES) / GROUP;
    let (first, first_low, first_high) = (&lows[0], low.0[0], high.0[0]);
    // One bit is set where an address is not what a pattern wants; sums over lanes come last.
    let (mut same, mut repeat, mut flat) = ([0; GROUP], [0; GROUP], [0; GROUP]);
    let (mut high, mut bits, mut crosses) = ([0; GROUP], [0; GROUP], [0; GROUP]);
    for (lows, highs) in lows.iter().zip(highs).take(groups) {
        for lane in 0..GROUP {
            let address = lows[lane];
            same[lane] |= address ^ first_low;
            repeat[lane] |= address ^ first[lane];
            flat[lane] |= address ^ lows[0];
            high[lane] |= highs[lane] ^ first_high;
            bits[lane] |= address;
            // The top bit is set if the offset is above the last that fits.
            crosses[lane] |= (OFFSET + 1 - bytes).wrapping_sub(address & OFFSET);
        }
    }
    let any = |of: [u32; GROUP]| of.into_iter().fold(0, |any, of| any | of);
    let (same, high) = (any(same), any(high) == 0);
    Pattern {
        same: same == 0 && high,
        page: same & !OFFSET == 0
            && high
            && any(bits) & (align - 1) == 0
            && any(crosses) >> 31 == 0,
        repeat: any(repeat) == 0 && high,
        flat: any(flat) == 0 && high,
    }
}

/// Whether the addresses of aligned words that two rows hold follow one another inside of a page.
#[inline(always)]
pub(crate) fn is_run(low: &Row, high: &Row, lanes: usize) -> bool {
    let first = low.0[0];
    if first & 3 != 0 || (first & OFFSET) as usize + 4 * lanes > OFFSET as usize + 1 {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the host has the features that the function is compiled for.
        return unsafe { is_run_avx2(low, high, lanes) };
    }
    is_run_body(low, high, lanes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn is_run_avx2(low: &Row, high: &Row, lanes: usize) -> bool {
    is_run_body(low, high, lanes)
}

#[inline(always)]
fn is_run_body(low: &Row, high: &Row, lanes: usize) -> bool {
    let (first_low, first_high) = (low.0[0], high.0[0]);
    let (lows, highs) = (low.0.as_chunks::<GROUP>().0, high.0.as_chunks::<GROUP>().0);
    let mut differs = [0; GROUP];
    let mut expected: [u32; GROUP] =
        std::array::from_fn(|lane| first_low.wrapping_add(lane as u32 * 4));
    for (lows, highs) in lows.iter().zip(highs).take(lanes.min(LANES) / GROUP) {
        for lane in 0..GROUP {
            differs[lane] |= lows[lane] ^ expected[lane] | highs[lane] ^ first_high;
            expected[lane] = expected[lane].wrapping_add(GROUP as u32 * 4);
        }
    }
    differs == [0; GROUP]
}

/// Mask of the offset in a page.
const OFFSET: u32 = 4095;

/// What addresses have in common, group by group; bit n is about lanes 8 n to 8 n + 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Common {
    /// The addresses are the same as that of the group's first lane.
    pub(crate) same: u32,
    /// The addresses are in the page of the group's first lane, are aligned, and no access crosses the page's end.
    pub(crate) page: u32,
}

/// As [`pattern`], for each group by itself.
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
    let mut common = Common::default();
    let (lows, highs) = (low.0.as_chunks::<GROUP>().0, high.0.as_chunks::<GROUP>().0);
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
    }
    common
}
