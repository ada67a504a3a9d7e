// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops over lanes, compiled for the vector units that the host turns out to have.
//!
//! A loop that is compiled for the lowest common processor may not use AVX2 or fused multiply-add. Each function here
//! exists several times, and the best one that the host can run is chosen. Results are the same either way.
// A loop has up to four rows besides where to, how far and what.
#![allow(unsafe_code, clippy::too_many_arguments)]

use mali_memory::Vectors;

use super::addresses::GROUP;
use super::micro::{MicroOp, OnRows};
use super::rows::{CHUNK, LANES, Row, Rows};
#[cfg(target_arch = "x86_64")]
use super::wide;

/// Whether loops may use AVX2, FMA and what comes with them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn has_avx2() -> bool {
    Vectors::in_use() >= Vectors::Avx2
}

/// Whether loops may use AVX-512. They are compiled for it in optimised builds only: it is a third copy of each.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[inline(always)]
fn has_avx512() -> bool {
    Vectors::in_use() == Vectors::Avx512
}

/// Whether `f32::mul_add` in a loop over lanes is an instruction and not a slow library call.
pub(crate) fn has_fused_multiply_add() -> bool {
    Vectors::in_use() >= Vectors::Avx2 || cfg!(target_arch = "aarch64")
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn wide_functions_agree_with_portable_ones() {
        if !wide::is_there() {
            return;
        }
        let row = |f: &dyn Fn(u32) -> u32| Row(std::array::from_fn(|lane| f(lane as u32)));
        for lane in 0..LANES as u32 {
            for other in [0, 1, 1 << 31] {
                for rest in [0, 7] {
                    let row = row(&|at| if at == lane { other } else { rest });
                    assert_eq!(nonzero(&row), nonzero_body(&row));
                }
            }
        }
        let mut repeated = row(&|lane| lane * 3);
        repeat(&mut repeated);
        assert_eq!(repeated.0, row(&|lane| lane % 16 * 3).0);
        spread(&mut repeated, &std::array::from_fn(|n| n as u32 + 5));
        assert_eq!(repeated.0, row(&|lane| lane / 8 + 5).0);
    }
}
