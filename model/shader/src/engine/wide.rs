// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written for AVX-512 by hand, because compilers make less of it: a row is four vectors.
//!
//! Other hosts run portable functions that do the same; tests compare the two.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use mali_memory::Vectors;

use super::addresses::{GROUP, OFFSET, Pattern};
use super::micro::MicroOp;
use super::rows::{CHUNK, LANES, Row, Rows};

/// Vectors of a row.
const VECTORS: usize = LANES / CHUNK;

/// Whether these functions may be used.
#[inline(always)]
pub(crate) fn is_there() -> bool {
    Vectors::in_use() == Vectors::Avx512
}

#[inline]
#[target_feature(enable = "avx512f")]
fn vectors(row: &Row) -> [__m512i; VECTORS] {
    let chunks = row.0.as_chunks::<CHUNK>().0;
    // SAFETY: a chunk has as many bytes as a vector.
    std::array::from_fn(|i| unsafe { _mm512_loadu_si512(chunks[i].as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn is_zero(vector: __m512i) -> bool {
    _mm512_test_epi32_mask(vector, vector) == 0
}

#[inline]
#[target_feature(enable = "avx512f")]
fn number(n: u32) -> __m512i {
    _mm512_set1_epi32(n as i32)
}

/// `a | (b ^ c)`.
#[inline]
#[target_feature(enable = "avx512f")]
fn or_xor(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_or_si512(a, _mm512_xor_si512(b, c))
}

/// As [`super::addresses::pattern`], for [`LANES`] lanes.
#[target_feature(enable = "avx512f")]
pub(super) fn pattern(low: &Row, high: &Row, bytes: u32, align: u32) -> Pattern {
    let (lows, highs) = (vectors(low), vectors(high));
    let (first, first_high) = (number(low.0[0]), number(high.0[0]));
    let halves = _mm512_set_epi32(8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    let zero = _mm512_setzero_si512();
    let (mut other, mut same, mut repeat, mut flat) = (zero, zero, zero, zero);
    let (mut bits, mut largest) = (zero, zero);
    for (low, high) in lows.into_iter().zip(highs) {
        other = or_xor(other, high, first_high);
        same = or_xor(same, low, first);
        repeat = or_xor(repeat, low, lows[0]);
        flat = or_xor(flat, low, _mm512_permutexvar_epi32(halves, low));
        bits = _mm512_or_si512(bits, low);
        largest = _mm512_max_epu32(largest, _mm512_and_si512(low, number(OFFSET)));
    }
    if !is_zero(other) {
        return Pattern::default();
    }
    let crosses = _mm512_cmpgt_epu32_mask(largest, number(OFFSET + 1 - bytes)) != 0;
    let whole = !crosses && is_zero(_mm512_and_si512(bits, number(align - 1)));
    Pattern {
        same: is_zero(same),
        whole,
        page: whole && is_zero(_mm512_andnot_si512(number(OFFSET), same)),
        repeat: is_zero(repeat),
        flat: is_zero(flat),
    }
}

/// Puts the first chunk of a row into the others.
#[target_feature(enable = "avx512f")]
pub(super) fn repeat(row: &mut Row) {
    let [first, ..] = vectors(row);
    for chunk in &mut row.0.as_chunks_mut::<CHUNK>().0[1..] {
        // SAFETY: a chunk has as many bytes as a vector.
        unsafe { _mm512_storeu_si512(chunk.as_mut_ptr().cast(), first) };
    }
}

/// Gives each group of a row one of the first values.
#[target_feature(enable = "avx512f")]
pub(super) fn spread(row: &mut Row, values: &[u32; CHUNK]) {
    for (group, &value) in row.0.as_chunks_mut::<GROUP>().0.iter_mut().zip(values) {
        let vector = _mm256_set1_epi32(value as i32);
        // SAFETY: a group has as many bytes as a vector of 256 bits.
        unsafe { _mm256_storeu_si256(group.as_mut_ptr().cast(), vector) };
    }
}

/// As the portable function of that name.
#[target_feature(enable = "avx512f")]
pub(super) fn is_run(low: &Row, high: &Row, mask: u64, first: usize) -> bool {
    let start = low.0[first].wrapping_sub(4 * first as u32);
    let steps = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let mut expected = _mm512_add_epi32(number(start), _mm512_slli_epi32::<2>(steps));
    let high_word = number(high.0[first]);
    let mut differ = 0;
    for (chunk, (low, high)) in vectors(low).into_iter().zip(vectors(high)).enumerate() {
        let wrong = _mm512_or_si512(
            _mm512_xor_si512(low, expected),
            _mm512_xor_si512(high, high_word),
        );
        differ |= _mm512_test_epi32_mask(wrong, wrong) & (mask >> (CHUNK * chunk)) as u16;
        expected = _mm512_add_epi32(expected, number(4 * CHUNK as u32));
    }
    differ == 0
}

/// The lanes whose word is not zero.
#[target_feature(enable = "avx512f")]
pub(super) fn nonzero(row: &Row) -> u64 {
    let masks = vectors(row).map(|vector| u64::from(_mm512_test_epi32_mask(vector, vector)));
    masks.iter().rev().fold(0, |all, mask| all << CHUNK | mask)
}

/// Executes N multiply-adds at once: row `d` of each grows by the product of its rows `a` and `b`, and `a` is the same row for
/// all. No row `d` is another's, or a factor.
#[target_feature(enable = "avx512f")]
pub(super) fn accumulate<const N: usize>(ops: &[MicroOp; N], rows: &mut Rows) {
    let common = vectors(rows.get(ops[0].a));
    let factors: [*const Row; N] = std::array::from_fn(|i| std::ptr::from_ref(rows.get(ops[i].b)));
    let sums: [*mut Row; N] = std::array::from_fn(|i| std::ptr::from_mut(rows.get_mut(ops[i].d)));
    let quiet = number(0x7fc0_0000);
    for (chunk, common) in common.into_iter().enumerate() {
        for (factor, sum) in factors.into_iter().zip(sums) {
            // SAFETY: both lead to rows, which nobody else touches meanwhile, and a row has as many chunks.
            unsafe {
                let (factor, sum) = (
                    factor.cast::<__m512>().add(chunk),
                    sum.cast::<__m512>().add(chunk),
                );
                let common = _mm512_castsi512_ps(common);
                let new = _mm512_fmadd_ps(common, factor.read(), sum.read());
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(new, new);
                let new = _mm512_mask_blend_ps(nan, new, _mm512_castsi512_ps(quiet));
                sum.write(new);
            }
        }
    }
}
