// SPDX-License-Identifier: MIT OR Apache-2.0
//! Half-precision multiply-adds, rounded once to nearest even.
//!
//! The product is exact in single precision; the sum is rounded to odd there, which keeps all that rounding to half
//! depends on. Compilers cannot do that in loops; hosts without conversions run [`half::multiply_add`].
#![allow(unsafe_code)]

use super::loops;
#[cfg(target_arch = "x86_64")]
use super::loops::on_rows;
use crate::alu::{Round, half};
use crate::ir::micro::{MicroOp, OnRows};
use crate::rows::Rows;

/// Of both halves, each rounded once.
pub fn multiply_add() -> OnRows {
    choose!(
        portable: loops::three(
            #[inline(always)]
            |_, a, b, c| half::fma(a, b, c, Round::Even),
        ),
        avx2: on_rows(avx2::multiply_add),
        avx512: on_rows(avx512::multiply_add),
    )
}

/// Low halves, result in both: compilers' arithmetic on single halves.
pub(crate) fn multiply_add_low() -> OnRows {
    choose!(
        portable: loops::three(
            #[inline(always)]
            |_, a, b, c| u32::from(half::multiply_add(a as u16, b as u16, c as u16)) * 0x1_0001,
        ),
        avx2: on_rows(avx2::multiply_add_low),
        avx512: on_rows(avx512::multiply_add_low),
    )
}

/// As `singles::accumulate`, with low halves.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
pub(crate) fn accumulate<const N: usize>(ops: &[MicroOp; N], rows: &mut Rows) -> bool {
    choose!(portable: false, avx512: {
        avx512::accumulate(ops, rows);
        true
    })
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use crate::ir::micro::MicroOp;
    use crate::rows::{CHUNK, LANES, Rows};

    /// Rounded to odd; NaN becomes quiet.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn odd(a: __m512, b: __m512, c: __m512) -> __m512 {
        const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
        const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
        let down = _mm512_fmadd_round_ps::<DOWN>(a, b, c);
        let up = _mm512_fmadd_round_ps::<UP>(a, b, c);
        let is_odd = _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1));
        let sum = _mm512_mask_blend_ps(is_odd, up, down);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
        _mm512_mask_blend_ps(nan, sum, _mm512_set1_ps(f32::from_bits(0x7fc0_0000)))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn singles(halves: &[u32; 8]) -> __m512 {
        // SAFETY: there are 32 bytes.
        _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn low_singles(words: &[u32; CHUNK]) -> __m512 {
        // SAFETY: there are 64 bytes.
        let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn twice(numbers: __m512, to: &mut [u32; CHUNK]) {
        let words = _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(numbers));
        let words = _mm512_or_si512(words, _mm512_slli_epi32::<16>(words));
        // SAFETY: there are 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) };
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn multiply_add(op: &MicroOp, rows: &mut Rows) {
        let lanes = rows.lanes().min(LANES);
        let (out, sources) = rows.operands([op.a, op.b, op.c]);
        let [a, b, c] = sources.map(|row| row.0[..lanes].as_chunks().0);
        let out = out.0[..lanes].as_chunks_mut::<8>().0;
        for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
            let sum = odd(singles(a), singles(b), singles(c));
            let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(sum);
            // SAFETY: there are 32 bytes.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), halves) };
        }
        rows.commit(op.d);
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn multiply_add_low(op: &MicroOp, rows: &mut Rows) {
        let lanes = rows.lanes().min(LANES);
        let (out, sources) = rows.operands([op.a, op.b, op.c]);
        let [a, b, c] = sources.map(|row| row.0[..lanes].as_chunks().0);
        let out = out.0[..lanes].as_chunks_mut().0;
        for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
            twice(odd(low_singles(a), low_singles(b), low_singles(c)), out);
        }
        rows.commit(op.d);
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn accumulate<const N: usize>(ops: &[MicroOp; N], rows: &mut Rows) {
        let mut common = [_mm512_setzero_ps(); LANES / CHUNK];
        for (to, words) in common.iter_mut().zip(rows.get(ops[0].a).0.as_chunks().0) {
            *to = low_singles(words);
        }
        for op in ops {
            let mut factors = common;
            for (to, words) in factors.iter_mut().zip(rows.get(op.b).0.as_chunks().0) {
                *to = low_singles(words);
            }
            let sums = rows.get_mut(op.d).0.as_chunks_mut().0;
            for ((common, factor), sum) in common.into_iter().zip(factors).zip(sums) {
                let new = odd(common, factor, low_singles(sum));
                twice(new, sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use crate::ir::micro::MicroOp;
    use crate::rows::{CHUNK, LANES, Rows};

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn odd(a: __m256, b: __m256, c: __m256) -> __m256 {
        let product = _mm256_mul_ps(a, b);
        let sum = _mm256_add_ps(product, c);
        // Knuth's TwoSum; NaN if not finite.
        let from_c = _mm256_sub_ps(sum, product);
        let from_product = _mm256_sub_ps(sum, from_c);
        let error = _mm256_add_ps(
            _mm256_sub_ps(product, from_product),
            _mm256_sub_ps(c, from_c),
        );
        let inexact = _mm256_cmp_ps::<_CMP_NEQ_OQ>(error, _mm256_setzero_ps());
        let (bits, one) = (_mm256_castps_si256(sum), _mm256_set1_epi32(1));
        let is_odd = _mm256_cmpeq_epi32(_mm256_and_si256(bits, one), one);
        let signs = _mm256_xor_si256(bits, _mm256_castps_si256(error));
        let step = _mm256_or_si256(_mm256_srai_epi32::<31>(signs), one);
        let step = _mm256_and_si256(
            _mm256_andnot_si256(is_odd, _mm256_castps_si256(inexact)),
            step,
        );
        let sum = _mm256_castsi256_ps(_mm256_add_epi32(bits, step));
        let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum);
        _mm256_blendv_ps(sum, _mm256_set1_ps(f32::from_bits(0x7fc0_0000)), nan)
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn singles(halves: __m256i) -> [__m256; 2] {
        [
            _mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
            _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(halves)),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn halves(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        let ([a, d], [b, e], [c, f]) = (singles(a), singles(b), singles(c));
        let first = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(odd(a, b, c));
        let second = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(odd(d, e, f));
        _mm256_set_m128i(second, first)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(words: &[u32; 8]) -> __m256i {
        // SAFETY: there are 32 bytes.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(vector: __m256i, to: &mut [u32; 8]) {
        // SAFETY: there are 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
    }

    /// Words 0 to 3, 8 to 11, 4 to 7, 12 to 15.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn low_halves(words: &[u32; CHUNK]) -> __m256i {
        let [first, second] = [&words.as_chunks().0[0], &words.as_chunks().0[1]];
        let mask = _mm256_set1_epi32(0xffff);
        let first = _mm256_and_si256(load(first), mask);
        let second = _mm256_and_si256(load(second), mask);
        _mm256_packus_epi32(first, second)
    }

    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn multiply_add(op: &MicroOp, rows: &mut Rows) {
        let lanes = rows.lanes().min(LANES);
        let (out, sources) = rows.operands([op.a, op.b, op.c]);
        let [a, b, c] = sources.map(|row| row.0[..lanes].as_chunks().0);
        let out = out.0[..lanes].as_chunks_mut().0;
        for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
            store(halves(load(a), load(b), load(c)), out);
        }
        rows.commit(op.d);
    }

    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn multiply_add_low(op: &MicroOp, rows: &mut Rows) {
        let lanes = rows.lanes().min(LANES);
        let (out, sources) = rows.operands([op.a, op.b, op.c]);
        let [a, b, c] = sources.map(|row| row.0[..lanes].as_chunks().0);
        let out = out.0[..lanes].as_chunks_mut::<CHUNK>().0;
        for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
            let new = halves(low_halves(a), low_halves(b), low_halves(c));
            let out = out.as_chunks_mut().0;
            store(_mm256_unpacklo_epi16(new, new), &mut out[0]);
            store(_mm256_unpackhi_epi16(new, new), &mut out[1]);
        }
        rows.commit(op.d);
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::loops::Special;
    use super::*;
    use crate::rows::{LANES, REGISTERS};

    const A: u16 = 1;
    const B: u16 = 2;
    const C: u16 = 3;

    /// Ends of all kinds of numbers, mantissas next to ties.
    fn special() -> Vec<u16> {
        let magnitudes = (0..32u16).flat_map(|exponent| {
            [0, 1, 2, 0x1ff, 0x200, 0x201, 0x3fe, 0x3ff].map(|mantissa| exponent << 10 | mantissa)
        });
        magnitudes.flat_map(|half| [half, 0x8000 | half]).collect()
    }

    fn op(d: u16, a: u16, b: u16, c: u16) -> MicroOp {
        MicroOp {
            run: crate::ir::micro::Run::Rows(multiply_add()),
            d,
            a,
            b,
            c,
            e: 0,
            m: 0,
            sources: 3,
            kind: crate::ir::micro::Kind::Plain,
            part: 0,
        }
    }

    fn functions() -> Vec<[OnRows; 2]> {
        let mut functions = Vec::new();
        if gpureplay_memory::Vectors::of_host() >= gpureplay_memory::Vectors::Avx2 {
            // SAFETY: the host has what they are compiled for.
            functions.push(
                [avx2::multiply_add as Special, avx2::multiply_add_low]
                    .map(|one| unsafe { on_rows(one) }),
            );
        }
        if gpureplay_memory::Vectors::of_host() >= gpureplay_memory::Vectors::Avx512 {
            // SAFETY: as above.
            functions.push(
                [avx512::multiply_add as Special, avx512::multiply_add_low]
                    .map(|one| unsafe { on_rows(one) }),
            );
        }
        functions
    }

    fn check(rows: &mut Rows, functions: &[[OnRows; 2]]) {
        let op = op(10, A, B, C);
        let word = |rows: &Rows, row: u16, lane: usize| rows.get(row).0[lane];
        for [both, low] in functions {
            for (twice, run) in [(false, both), (true, low)] {
                run(&op, rows);
                for lane in 0..rows.lanes() {
                    let [a, b, c] = [A, B, C].map(|row| word(rows, row, lane));
                    let one = |at: u32| {
                        let [a, b, c] = [a, b, c].map(|word| (word >> at) as u16);
                        u32::from(half::multiply_add(a, b, c))
                    };
                    let want = one(0) | one(if twice { 0 } else { 16 }) << 16;
                    let have = word(rows, 10, lane);
                    assert_eq!(have, want, "{a:08x} * {b:08x} + {c:08x} twice {twice}");
                }
            }
        }
    }

    #[test]
    fn special_values_are_as_by_the_arithmetic_on_one_half() {
        let (special, functions) = (special(), functions());
        let mut rows = Rows::new(REGISTERS as u16, LANES);
        rows.activate(u64::MAX, u64::MAX);
        // Pairs of factors with a differing term, with one next to the product, and with products of nearly half
        // the last place.
        let mut seed = 1u32;
        let mut lane = 0;
        for &a in &special {
            for &b in &special {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let product = half::multiply_add(a, b, 0);
                let above = (product & 0x7c00).saturating_add(11 << 10).min(0x7c00);
                let sign = (seed >> 31) as u16 * 0x8000;
                for pair in [
                    [
                        special[(seed >> 8) as usize % special.len()],
                        product ^ 0x8001,
                    ],
                    [above | sign, above | sign | 1],
                ] {
                    for (row, value) in [(A, [a, a]), (B, [b, b]), (C, pair)] {
                        let word = u32::from(value[0]) | u32::from(value[1]) << 16;
                        rows.get_mut(row).0[lane] = word;
                        rows.get_mut(row).0[lane + 1] = word.rotate_left(16);
                    }
                    lane = (lane + 2) % LANES;
                    if lane == 0 {
                        check(&mut rows, &functions);
                    }
                }
            }
        }
    }

    #[test]
    fn random_values_are_as_by_the_arithmetic_on_one_half() {
        let functions = functions();
        let mut state = 7u64;
        for round in 0..20_000 {
            let mut rows = Rows::new(REGISTERS as u16, 1 + round % LANES);
            rows.activate(u64::MAX, u64::MAX);
            for row in [A, B, C] {
                for word in &mut rows.get_mut(row).0 {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    *word = (state >> 20) as u32;
                }
            }
            check(&mut rows, &functions);
        }
    }

    #[test]
    fn several_at_once_are_as_one_after_the_other() {
        let mut rows = Rows::new(REGISTERS as u16, LANES);
        rows.activate(u64::MAX, u64::MAX);
        for row in 0..20u16 {
            for (lane, word) in rows.get_mut(row).0.iter_mut().enumerate() {
                *word = (u32::from(row) * 64 + lane as u32).wrapping_mul(2_654_435_761);
            }
        }
        let ops = [(10, 2), (11, 3), (12, 4), (13, 2)].map(|(d, b)| op(d, A, b, d));
        let want: Vec<_> = ops
            .iter()
            .map(|op| {
                let word = |row: u16, lane: usize| rows.get(row).0[lane] as u16;
                let sum =
                    |lane| half::multiply_add(word(op.a, lane), word(op.b, lane), word(op.c, lane));
                std::array::from_fn::<_, LANES, _>(|lane| u32::from(sum(lane)) * 0x1_0001)
            })
            .collect();
        if accumulate(&ops, &mut rows) {
            for (op, want) in ops.iter().zip(want) {
                assert_eq!(rows.get(op.d).0, want);
            }
        }
    }
}
