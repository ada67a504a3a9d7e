// SPDX-License-Identifier: MIT OR Apache-2.0
//! AVX-512 by hand, as compilers do worse: a row is four vectors.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::row::{CHUNK, GROUP, LANES, Row};

const VECTORS: usize = LANES / CHUNK;

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn vectors(row: &Row) -> [__m512i; VECTORS] {
    let chunks = row.0.as_chunks::<CHUNK>().0;
    // SAFETY: a chunk has as many bytes as a vector.
    std::array::from_fn(|i| unsafe { _mm512_loadu_si512(chunks[i].as_ptr().cast()) })
}

#[target_feature(enable = "avx512f")]
pub(super) fn repeat(row: &mut Row) {
    let [first, ..] = vectors(row);
    for chunk in &mut row.0.as_chunks_mut::<CHUNK>().0[1..] {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(chunk.as_mut_ptr().cast(), first) };
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn spread(row: &mut Row, values: &[u32; CHUNK]) {
    for (group, &value) in row.0.as_chunks_mut::<GROUP>().0.iter_mut().zip(values) {
        let vector = _mm256_set1_epi32(value as i32);
        // SAFETY: a group has as many bytes as a vector of 256 bits.
        unsafe { _mm256_storeu_si256(group.as_mut_ptr().cast(), vector) };
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn nonzero(row: &Row) -> u64 {
    let masks = vectors(row).map(|vector| u64::from(_mm512_test_epi32_mask(vector, vector)));
    masks.iter().rev().fold(0, |all, mask| all << CHUNK | mask)
}
