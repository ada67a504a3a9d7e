// SPDX-License-Identifier: MIT OR Apache-2.0
//! 64-bit sums: low word and carry at once.
#![allow(unsafe_code)]

use crate::ir::micro::MicroOp;
use crate::rows::Rows;

/// False: the host has no way. First `d = a + b`; the second, maybe an addition to another row, compares that with
/// one of the two.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
pub(crate) fn add_wide(ops: &[MicroOp], rows: &mut Rows) -> bool {
    choose!(portable: false, avx512: {
        avx512::add_wide(ops, rows);
        true
    })
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use crate::ir::micro::{Kind, MicroOp};
    use crate::rows::wide::vectors;
    use crate::rows::{CHUNK, Rows};

    #[target_feature(enable = "avx512f")]
    pub(super) fn add_wide(ops: &[MicroOp], rows: &mut Rows) {
        for [low, high] in ops.as_chunks().0 {
            let (a, b) = (vectors(rows.get(low.a)), vectors(rows.get(low.b)));
            let (compared, before) = match high.kind {
                Kind::Carry => (high.b, vectors(rows.get(high.a))),
                _ => (high.a, [_mm512_setzero_si512(); _]),
            };
            let term = if compared == low.a { a } else { b };
            let one = _mm512_set1_epi32(1);
            let (mut sums, mut highs) = (a, before);
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = _mm512_add_epi32(a[at], b[at]);
                let carries = _mm512_cmpgt_epu32_mask(term[at], *sum);
                highs[at] = _mm512_mask_add_epi32(before[at], carries, before[at], one);
            }
            for (row, vectors) in [(low.d, sums), (high.d, highs)] {
                let chunks = rows.get_mut(row).0.as_chunks_mut::<CHUNK>().0;
                for (chunk, vector) in chunks.iter_mut().zip(vectors) {
                    // SAFETY: a chunk fills a vector.
                    unsafe { _mm512_storeu_si512(chunk.as_mut_ptr().cast(), vector) };
                }
            }
        }
    }
}
