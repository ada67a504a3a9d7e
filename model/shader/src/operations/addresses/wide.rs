// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses of a batch, classified with AVX-512.

use std::arch::x86_64::*;

use super::{Common, OFFSET, Pattern};
use crate::rows::wide::vectors;
use crate::rows::{CHUNK, GROUP, Row};

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

#[inline]
#[target_feature(enable = "avx512f")]
fn or_xor(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_or_si512(a, _mm512_xor_si512(b, c))
}

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

#[target_feature(enable = "avx512f")]
pub(super) fn common(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Common {
    let halves = _mm512_set_epi32(8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    let mut common = Common::default();
    let chunks = vectors(low).into_iter().zip(vectors(high));
    for (chunk, (low, high)) in chunks.enumerate().take(lanes / CHUNK) {
        let lows = _mm512_xor_si512(low, _mm512_permutexvar_epi32(halves, low));
        let highs = _mm512_xor_si512(high, _mm512_permutexvar_epi32(halves, high));
        let differs = _mm512_or_si512(lows, highs);
        let other = _mm512_test_epi32_mask(differs, differs);
        let pages = _mm512_or_si512(_mm512_andnot_si512(number(OFFSET), lows), highs);
        let at = _mm512_and_si512(low, number(OFFSET));
        let apart = _mm512_test_epi32_mask(pages, pages)
            | _mm512_test_epi32_mask(low, number(align - 1))
            | _mm512_cmpgt_epu32_mask(at, number(OFFSET + 1 - bytes));
        for (half, group) in [(0, 2 * chunk), (GROUP, 2 * chunk + 1)] {
            let none = |mask: u16| u32::from(mask >> half & 0xff == 0) << group;
            common.same |= none(other);
            common.page |= none(apart);
        }
    }
    common
}

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

#[target_feature(enable = "avx512f")]
pub(super) fn add(low: &Row, bytes: u32, sums: &mut Row) -> bool {
    let mut carry = 0;
    let chunks = sums.0.as_chunks_mut::<CHUNK>().0;
    for (low, to) in vectors(low).into_iter().zip(chunks) {
        let sum = _mm512_add_epi32(low, number(bytes));
        carry |= _mm512_cmplt_epu32_mask(sum, low);
        // SAFETY: a chunk fills a vector.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), sum) };
    }
    carry != 0
}
