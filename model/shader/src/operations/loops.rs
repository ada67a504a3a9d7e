// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops over lanes.
//!
//! [`one`] to [`four`] compile a loop per kind of vector unit, as a portable one may not use AVX2 or fused
//! multiply-add. [`mod@rare`] has one copy, called by lane in a shared loop.
#![allow(unsafe_code, clippy::too_many_arguments)]

use crate::ir::micro::{MicroOp, OnRows};
use crate::rows::{LANES, Row, Rows};

#[cfg(target_arch = "x86_64")]
pub(super) type Special = unsafe fn(&MicroOp, &mut Rows);

/// # Safety
///
/// The host must have the function's features.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn on_rows(special: Special) -> OnRows {
    // SAFETY: the types differ in that only.
    unsafe { std::mem::transmute::<Special, OnRows>(special) }
}

/// The only value of a type.
///
/// # Safety
///
/// A value of the type exists.
#[inline(always)]
unsafe fn only<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0) };
    // SAFETY: the value has no bytes, may be copied, and exists.
    unsafe { std::ptr::dangling::<F>().read() }
}

pub(crate) fn copy(op: &MicroOp, rows: &mut Rows) {
    rows.copy(op.a, op.d);
}

/// Defines `$name(f)`: puts `f(m, a, ...)` into row `d`. Chooses the vector units once; `f` captures nothing.
macro_rules! loop_over_lanes {
    ($name:ident: $run512:ident, $run2:ident, $run:ident, $rare:ident, $loop512:ident, $loop2:ident,
     $shared:ident, $body:ident, ($($source:ident: $number:ty),+)) => {
        /// Puts `f(m, ...)` into row `d`.
        pub fn $name<F: Fn(u32, $($number),+) -> u32 + Copy>(_: F) -> OnRows {
            choose!(
                portable: $run::<F>,
                avx2: on_rows($run2::<F>),
                avx512: on_rows($run512::<F>),
            )
        }

        // Not in unoptimised builds, which without AVX2 share one loop: each version copies every loop.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $run512<F: Fn(u32, $($number),+) -> u32 + Copy>(op: &MicroOp, rows: &mut Rows) {
            // SAFETY: the function is named only where an F was given.
            let f = unsafe { only::<F>() };
            let (out, [$($source),+]) = rows.operands([$(op.$source),+]);
            $loop512(out, $($source,)+ op.m, f);
            rows.commit(op.d);
        }

        #[cfg(all(target_arch = "x86_64", debug_assertions))]
        use $run2 as $run512;

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $run2<F: Fn(u32, $($number),+) -> u32 + Copy>(op: &MicroOp, rows: &mut Rows) {
            // SAFETY: as above.
            let f = unsafe { only::<F>() };
            let (out, [$($source),+]) = rows.operands([$(op.$source),+]);
            $loop2(out, $($source,)+ op.m, f);
            rows.commit(op.d);
        }

        #[cfg(all(target_arch = "x86_64", debug_assertions))]
        use $rare as $run;

        #[cfg(not(all(target_arch = "x86_64", debug_assertions)))]
        fn $run<F: Fn(u32, $($number),+) -> u32 + Copy>(op: &MicroOp, rows: &mut Rows) {
            // SAFETY: as above.
            let f = unsafe { only::<F>() };
            let (out, [$($source),+]) = rows.operands([$(op.$source),+]);
            $body(out, $($source,)+ LANES, op.m, f);
            rows.commit(op.d);
        }

        fn $rare<F: Fn(u32, $($number),+) -> u32 + Copy>(op: &MicroOp, rows: &mut Rows) {
            // SAFETY: as above.
            let f = unsafe { only::<F>() };
            $shared(op, rows, &f);
        }

        #[inline(never)]
        fn $shared(op: &MicroOp, rows: &mut Rows, f: &dyn Fn(u32, $($number),+) -> u32) {
            let lanes = rows.lanes();
            let (out, [$($source),+]) = rows.operands([$(op.$source),+]);
            $body(out, $($source,)+ lanes, op.m, f);
            rows.commit(op.d);
        }

        // All lanes: a fixed length is faster and smaller, and rows have room. Parameters tell the compiler that
        // rows are apart.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $loop512(out: &mut Row, $($source: &Row,)+ m: u32, f: impl Fn(u32, $($number),+) -> u32) {
            $body(out, $($source,)+ LANES, m, f);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn $loop2(out: &mut Row, $($source: &Row,)+ m: u32, f: impl Fn(u32, $($number),+) -> u32) {
            $body(out, $($source,)+ LANES, m, f);
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

loop_over_lanes!(one: one_avx512, one_avx2, one_portable, rare_one, loop1_avx512, loop1_avx2, shared1, body1, (a: u32));
loop_over_lanes!(two: two_avx512, two_avx2, two_portable, rare_two, loop2_avx512, loop2_avx2, shared2, body2, (a: u32, b: u32));
loop_over_lanes!(three: three_avx512, three_avx2, three_portable, rare_three, loop3_avx512, loop3_avx2, shared3, body3, (a: u32, b: u32, c: u32));
loop_over_lanes!(four: four_avx512, four_avx2, four_portable, rare_four, loop4_avx512, loop4_avx2, shared4, body4, (a: u32, b: u32, c: u32, e: u32));

/// Rare operations: one copy of the function for all hosts.
pub mod rare {
    use super::OnRows;

    macro_rules! rare {
        ($name:ident: $run:ident, ($($number:ty),+)) => {
            /// Puts `f(m, ...)` into row `d`.
            pub fn $name<F: Fn(u32, $($number),+) -> u32 + Copy>(_: F) -> OnRows {
                super::$run::<F>
            }
        };
    }

    rare!(one: rare_one, (u32));
    rare!(two: rare_two, (u32, u32));
    rare!(three: rare_three, (u32, u32, u32));
    rare!(four: rare_four, (u32, u32, u32, u32));
}
