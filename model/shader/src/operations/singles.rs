// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several single-precision multiply-adds at once.
#![allow(unsafe_code)]

use crate::ir::micro::MicroOp;
use crate::rows::Rows;

/// N on all lanes; false: the host has no way. Each row `d` grows by `a * b`; `a` is common. No `d` is another's,
/// or a factor.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
pub(crate) fn accumulate<const N: usize>(ops: &[MicroOp; N], rows: &mut Rows) -> bool {
    choose!(portable: false, avx512: {
        avx512::accumulate(ops, rows);
        true
    })
}

/// Multiply-adds in whole rows; false: the host has no way. One row `d` grows by all `a * b`; it is no factor.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
pub(crate) fn add_all(ops: &[MicroOp], rows: &mut Rows) -> bool {
    choose!(portable: false, avx512: {
        avx512::add_all(ops, rows);
        true
    })
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use crate::alu::float::QUIET;
    use crate::ir::micro::MicroOp;
    use crate::rows::wide::vectors;
    use crate::rows::{CHUNK, Rows};

    #[target_feature(enable = "avx512f")]
    pub(super) fn add_all(ops: &[MicroOp], rows: &mut Rows) {
        let Some(first) = ops.first() else { return };
        let quiet = _mm512_set1_ps(f32::from_bits(QUIET));
        let mut sums = vectors(rows.get(first.d)).map(|vector| _mm512_castsi512_ps(vector));
        for op in ops {
            let (a, b) = (vectors(rows.get(op.a)), vectors(rows.get(op.b)));
            for (sum, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
                *sum = _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), *sum);
            }
        }
        let to = rows.get_mut(first.d).0.as_chunks_mut::<CHUNK>().0;
        for (to, sum) in to.iter_mut().zip(sums) {
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
            let sum = _mm512_mask_blend_ps(nan, sum, quiet);
            // SAFETY: a chunk fills a vector.
            unsafe { _mm512_storeu_ps(to.as_mut_ptr().cast(), sum) };
        }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn accumulate<const N: usize>(ops: &[MicroOp; N], rows: &mut Rows) {
        let common = vectors(rows.get(ops[0].a)).map(|vector| _mm512_castsi512_ps(vector));
        let quiet = _mm512_set1_ps(f32::from_bits(QUIET));
        for op in ops {
            let factors = vectors(rows.get(op.b));
            let sums = rows.get_mut(op.d).0.as_chunks_mut::<CHUNK>().0;
            for ((common, factor), sum) in common.into_iter().zip(factors).zip(sums) {
                // SAFETY: a chunk fills a vector.
                let old = unsafe { _mm512_loadu_ps(sum.as_ptr().cast()) };
                let new = _mm512_fmadd_ps(common, _mm512_castsi512_ps(factor), old);
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(new, new);
                let new = _mm512_mask_blend_ps(nan, new, quiet);
                // SAFETY: as above.
                unsafe { _mm512_storeu_ps(sum.as_mut_ptr().cast(), new) };
            }
        }
    }
}
