// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops over lanes, compiled for the vector units that the host turns out to have.
//!
//! A loop that is compiled for the lowest common processor may not use AVX2 or fused multiply-add. Each function here
//! exists several times, and the best one that the host can run is chosen. Results are the same either way.
// A loop has up to four rows besides where to, how far and what.
#![allow(unsafe_code, clippy::too_many_arguments)]

use super::micro::{MicroOp, OnRows};
use super::rows::{CHUNK, LANES, Row, Rows};
#[cfg(target_arch = "x86_64")]
use super::wide;

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

/// The value of a type that has only one: a function or a closure that captures nothing.
///
/// # Safety
///
/// A value of the type exists somewhere.
#[inline(always)]
unsafe fn only<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0) };
    // SAFETY: the value has no bytes, may be copied, and exists.
    unsafe { std::ptr::dangling::<F>().read() }
}

/// Defines `$name(f)`, which gives the function of a micro-operation that puts `f(m, a, ...)` into row `d`, lane by lane. The
/// choice of vector units is made there, not when it runs; `f` captures nothing.
macro_rules! loop_over_lanes {
    ($name:ident: $run512:ident, $run2:ident, $run:ident, $loop512:ident, $loop2:ident, $loop:ident, $body:ident,
     ($($source:ident: $number:ty),+)) => {
        /// The function of a micro-operation that puts `f(m, ...)` into row `d`.
        pub(crate) fn $name<F: Fn(u32, $($number),+) -> u32 + Copy>(_: F) -> OnRows {
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            if has_avx512() {
                // SAFETY: the host has the features that the function is compiled for; that is all it asks for.
                return unsafe { std::mem::transmute::<unsafe fn(&MicroOp, &mut Rows), OnRows>($run512::<F>) };
            }
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the host has the features that the function is compiled for; that is all it asks for.
                return unsafe { std::mem::transmute::<unsafe fn(&MicroOp, &mut Rows), OnRows>($run2::<F>) };
            }
            $run::<F>
        }

        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $run512<F: Fn(u32, $($number),+) -> u32 + Copy>(op: &MicroOp, rows: &mut Rows) {
            // SAFETY: the function is named only where an F was given.
            let f = unsafe { only::<F>() };
            let lanes = rows.lanes();
            let (out, [$($source),+]) = rows.operands([$(op.$source),+]);
            if lanes == LANES {
                $loop512(out, $($source,)+ op.m, f);
            } else {
                $loop2(out, $($source,)+ lanes, op.m, f);
            }
            rows.commit(op.d);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $run2<F: Fn(u32, $($number),+) -> u32 + Copy>(op: &MicroOp, rows: &mut Rows) {
            // SAFETY: the function is named only where an F was given.
            let f = unsafe { only::<F>() };
            let lanes = rows.lanes();
            let (out, [$($source),+]) = rows.operands([$(op.$source),+]);
            $loop2(out, $($source,)+ lanes, op.m, f);
            rows.commit(op.d);
        }

        fn $run<F: Fn(u32, $($number),+) -> u32 + Copy>(op: &MicroOp, rows: &mut Rows) {
            // SAFETY: the function is named only where an F was given.
            let f = unsafe { only::<F>() };
            let lanes = rows.lanes();
            let (out, [$($source),+]) = rows.operands([$(op.$source),+]);
            $loop(out, $($source,)+ lanes, op.m, &f);
            rows.commit(op.d);
        }

        // The rows are parameters of functions, which tells the compiler that they are apart.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $loop512(out: &mut Row, $($source: &Row,)+ m: u32, f: impl Fn(u32, $($number),+) -> u32) {
            $body(out, $($source,)+ LANES, m, f);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $loop2(out: &mut Row, $($source: &Row,)+ lanes: usize, m: u32, f: impl Fn(u32, $($number),+) -> u32) {
            $body(out, $($source,)+ lanes, m, f);
        }

        /// For processors without AVX2: one loop for all functions, so that the others need not be compiled twice.
        #[cfg(target_arch = "x86_64")]
        #[cold]
        fn $loop(out: &mut Row, $($source: &Row,)+ lanes: usize, m: u32, f: &dyn Fn(u32, $($number),+) -> u32) {
            $body(out, $($source,)+ lanes, m, f);
        }

        #[cfg(not(target_arch = "x86_64"))]
        fn $loop(out: &mut Row, $($source: &Row,)+ lanes: usize, m: u32, f: impl Fn(u32, $($number),+) -> u32) {
            $body(out, $($source,)+ lanes, m, f);
        }

        #[inline(always)]
        fn $body(out: &mut Row, $($source: &Row,)+ lanes: usize, m: u32, f: impl Fn(u32, $($number),+) -> u32) {
            let lanes = lanes.min(LANES);
            let out = &mut out.0[..lanes];
            $(let $source = &$source.0[..lanes];)+
            for i in 0..lanes {
                out[i] = f(m, $($source[i]),+);
            }
        }
    };
}

loop_over_lanes!(one: one_avx512, one_avx2, one_any, loop1_avx512, loop1_avx2, loop1, body1, (a: u32));
loop_over_lanes!(two: two_avx512, two_avx2, two_any, loop2_avx512, loop2_avx2, loop2, body2, (a: u32, b: u32));
loop_over_lanes!(three: three_avx512, three_avx2, three_any, loop3_avx512, loop3_avx2, loop3, body3, (a: u32, b: u32, c: u32));
loop_over_lanes!(four: four_avx512, four_avx2, four_any, loop4_avx512, loop4_avx2, loop4, body4, (a: u32, b: u32, c: u32, e: u32));

/// Puts `new` into the lanes of `row` whose `active` is all ones.
pub(crate) fn merge(row: &mut Row, new: &Row, active: &Row, lanes: usize) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the host has the features that the function is compiled for.
        return unsafe { merge_avx2(row, new, active, lanes) };
    }
    merge_body(row, new, active, lanes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn merge_avx2(row: &mut Row, new: &Row, active: &Row, lanes: usize) {
    merge_body(row, new, active, lanes);
}

#[inline(always)]
fn merge_body(row: &mut Row, new: &Row, active: &Row, lanes: usize) {
    let lanes = row.0.iter_mut().zip(&new.0).zip(&active.0).take(lanes);
    for ((row, new), active) in lanes {
        *row = *row & !active | new & active;
    }
}

/// Lanes whose addresses are classified together.
pub(crate) const GROUP: usize = 8;

/// What the addresses of a whole batch have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// They are all the same.
    pub(crate) same: bool,
    /// They have the same high word, are aligned, and no access crosses the end of its page.
    pub(crate) whole: bool,
    /// They are `whole` and in one page.
    pub(crate) page: bool,
    /// They are those of the first [`CHUNK`] lanes again and again.
    pub(crate) repeat: bool,
    /// The lanes of each group have the same address.
    pub(crate) flat: bool,
}

/// Classifies the 64-bit addresses that two rows hold, for accesses of `bytes` bytes that should be aligned to `align`
/// (a power of two).
#[inline(always)]
pub(crate) fn pattern(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Pattern {
    #[cfg(target_arch = "x86_64")]
    if lanes == LANES && wide::is_there() {
        // SAFETY: the host has the feature that the function is compiled for.
        return unsafe { wide::pattern(low, high, bytes, align) };
    }
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
    let (lows, highs) = (low.0.as_chunks::<CHUNK>().0, high.0.as_chunks::<CHUNK>().0);
    let chunks = lanes.min(LANES) / CHUNK;
    let (first, first_low, first_high) = (&lows[0], low.0[0], high.0[0]);
    // A word is not zero where an address is not what a pattern wants; whether any is comes last.
    let (mut same, mut repeat, mut flat) = ([0; CHUNK], [0; CHUNK], [0; CHUNK]);
    let (mut whole, mut page) = ([0; CHUNK], [0; CHUNK]);
    for (lows, highs) in lows.iter().zip(highs).take(chunks) {
        let groups = [lows[0], lows[GROUP]];
        for lane in 0..CHUNK {
            let (address, other) = (lows[lane], highs[lane] ^ first_high);
            same[lane] |= address ^ first_low | other;
            repeat[lane] |= address ^ first[lane] | other;
            flat[lane] |= address ^ groups[lane / GROUP] | other;
            // The top bit is set if the offset is above the last that fits.
            let crosses = (OFFSET + 1 - bytes).wrapping_sub(address & OFFSET) & 1 << 31;
            whole[lane] |= address & (align - 1) | crosses | other;
            page[lane] |= (address ^ first_low) & !OFFSET;
        }
    }
    let none = |of: [u32; CHUNK]| of == [0; CHUNK];
    let whole = none(whole);
    Pattern {
        same: none(same),
        whole,
        page: whole && none(page),
        repeat: none(repeat),
        flat: none(flat),
    }
}

/// Puts the first chunk of a row into the others.
#[inline(always)]
pub(crate) fn repeat(row: &mut Row) {
    #[cfg(target_arch = "x86_64")]
    if wide::is_there() {
        // SAFETY: the host has the feature that the function is compiled for.
        return unsafe { wide::repeat(row) };
    }
    let chunks = row.0.as_chunks_mut::<CHUNK>().0;
    let first = chunks[0];
    chunks.fill(first);
}

/// Gives each group of a row one of the first values.
#[inline(always)]
pub(crate) fn spread(row: &mut Row, values: &[u32; CHUNK]) {
    #[cfg(target_arch = "x86_64")]
    if wide::is_there() {
        // SAFETY: the host has the feature that the function is compiled for.
        return unsafe { wide::spread(row, values) };
    }
    for (group, &value) in row.0.as_chunks_mut::<GROUP>().0.iter_mut().zip(values) {
        *group = [value; GROUP];
    }
}

/// Whether the host has a way to execute several multiply-adds at once.
pub(crate) fn accumulates() -> bool {
    #[cfg(target_arch = "x86_64")]
    return wide::is_there();
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Executes N multiply-adds at once where the host has a way to do so; returns whether it did.
#[inline(always)]
pub(crate) fn accumulate<const N: usize>(ops: &[MicroOp; N], rows: &mut Rows) -> bool {
    #[cfg(target_arch = "x86_64")]
    if wide::is_there() {
        // SAFETY: the host has the feature that the function is compiled for.
        unsafe { wide::accumulate(ops, rows) };
        return true;
    }
    let _ = (ops, rows);
    false
}

/// Where the accesses of the lanes in `mask` lie if they are to aligned words of one page that follow one another as the lanes do:
/// the first lane, and how many there are up to the last.
#[inline(always)]
pub(crate) fn run(low: &Row, high: &Row, mask: u64) -> Option<(usize, usize)> {
    let first = mask.trailing_zeros() as usize;
    let count = LANES.checked_sub(first + mask.leading_zeros() as usize)?;
    let start = *low.0.get(first)?;
    if start & 3 != 0 || (start & OFFSET) as usize + 4 * count > OFFSET as usize + 1 {
        return None;
    }
    #[cfg(target_arch = "x86_64")]
    if wide::is_there() {
        // SAFETY: the host has the feature that the function is compiled for.
        return unsafe { wide::is_run(low, high, mask, first) }.then_some((first, count));
    }
    is_run(low, high, mask, first).then_some((first, count))
}

fn is_run(low: &Row, high: &Row, mask: u64, first: usize) -> bool {
    let start = low.0[first].wrapping_sub(4 * first as u32);
    let mut differs = 0;
    for lane in 0..LANES {
        let active = ((mask >> lane) as u32 & 1).wrapping_neg();
        let expected = start.wrapping_add(4 * lane as u32);
        differs |= (low.0[lane] ^ expected | high.0[lane] ^ high.0[first]) & active;
    }
    differs == 0
}

/// The lanes whose word is not zero.
#[inline(always)]
pub(crate) fn nonzero(row: &Row) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if wide::is_there() {
        // SAFETY: the host has the feature that the function is compiled for.
        return unsafe { wide::nonzero(row) };
    }
    nonzero_body(row)
}

fn nonzero_body(row: &Row) -> u64 {
    let mut bits = 0;
    for (byte, lanes) in row.0.as_chunks::<8>().0.iter().enumerate() {
        let mut part = 0;
        for (i, &lane) in lanes.iter().enumerate() {
            part |= u64::from(lane != 0) << i;
        }
        bits |= part << (byte * 8);
    }
    bits
}

/// Mask of the offset in a page.
pub(super) const OFFSET: u32 = 4095;

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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn wide_functions_agree_with_portable_ones() {
        if !wide::is_there() {
            return;
        }
        let row = |f: &dyn Fn(u32) -> u32| Row(std::array::from_fn(|lane| f(lane as u32)));
        let mut lows: Vec<Row> = vec![
            row(&|_| 0x1000),
            row(&|_| 0x1ff8),
            row(&|lane| 0x1000 + 16 * lane),
            row(&|lane| 0x1000 + 16 * (lane % 16)),
            row(&|lane| 0x1000 + 16 * (lane % 8)),
            row(&|lane| 0x1000 + 16 * (lane / 8)),
            row(&|lane| 0x1000 + 16 * (lane / 16)),
            row(&|lane| 0x1e00 + 16 * lane),
            row(&|lane| 0x1004 + 16 * lane),
            row(&|lane| 0xffff_ff00u32.wrapping_add(16 * lane)),
        ];
        // Each lane in turn is different, by alignment, by page, or so that it crosses the end of a page.
        for lane in 0..LANES {
            for other in [0x1001, 0x2000, 0x1ff4, 0x1ff0] {
                let mut odd = row(&|_| 0x1000);
                odd.0[lane] = other;
                lows.push(odd);
            }
        }
        let mut highs = vec![row(&|_| 0), row(&|_| 7)];
        highs.extend([0, 1, 17, 63].map(|at| row(&|lane| u32::from(lane == at))));
        let mut seen = [0; 5];
        for low in &lows {
            for high in &highs {
                for (bytes, align) in [(1, 1), (4, 4), (8, 8), (12, 4), (16, 8)] {
                    let body = pattern_body(low, high, LANES, bytes, align);
                    assert_eq!(pattern(low, high, LANES, bytes, align), body);
                    let facts = [body.same, body.whole, body.page, body.repeat, body.flat];
                    for (seen, fact) in seen.iter_mut().zip(facts) {
                        *seen += u32::from(fact);
                    }
                }
            }
        }
        assert!(seen.iter().all(|&seen| seen > 0), "{seen:?}");

        let masks = [u64::MAX, 1, 1 << 63, 0xff, 0xff00, 0x0f0f << 20, !1, 6];
        let mut runs = 0;
        for (low, high) in lows
            .iter()
            .flat_map(|low| highs.iter().map(move |high| (low, high)))
        {
            for mask in masks {
                let first = mask.trailing_zeros() as usize;
                let is = is_run(low, high, mask, first);
                // SAFETY: the host has the feature.
                assert_eq!(unsafe { wide::is_run(low, high, mask, first) }, is);
                runs += u32::from(is);
            }
        }
        for step in [4, 8] {
            let mut low = row(&|lane| 0x1000 + step * lane);
            for lane in 0..LANES {
                for mask in masks {
                    let first = mask.trailing_zeros() as usize;
                    let is = is_run(&low, &highs[0], mask, first);
                    let found = run(&low, &highs[0], mask);
                    assert_eq!(found.is_some(), is);
                    runs += u32::from(is);
                }
                low.0[lane] ^= 4;
            }
        }
        assert!(runs > 100);
        for row in lows.iter().chain(&highs) {
            assert_eq!(nonzero(row), nonzero_body(row));
        }

        let mut repeated = row(&|lane| lane * 3);
        repeat(&mut repeated);
        assert_eq!(repeated.0, row(&|lane| lane % 16 * 3).0);
        spread(&mut repeated, &std::array::from_fn(|n| n as u32 + 5));
        assert_eq!(repeated.0, row(&|lane| lane / 8 + 5).0);
    }
}
