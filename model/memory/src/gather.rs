// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gathers for sixteen lanes.

#[cfg(target_arch = "x86_64")]
use crate::Vectors;
use crate::{PAGE_SIZE, Page};

/// Lanes of a gather.
pub const GATHER_LANES: usize = 16;

/// Reads WORDS (2 or 4) words per lane: word `w` of lane `l` to `to[w][l]`. Offsets from 4096 on are in the second
/// page. They are rounded down to a multiple of 4, and so that all words are in the page. Words are read whole.
#[inline(always)]
pub fn gather<const WORDS: usize>(
    pages: [&Page<'_>; 2],
    offsets: &[u32; GATHER_LANES],
    to: [&mut [u32; GATHER_LANES]; WORDS],
) {
    const { assert!(WORDS == 2 || WORDS == 4) };
    let last = (PAGE_SIZE - 4 * WORDS) as u32;
    let places = offsets.map(|offset| (offset & 0xffc).min(last) | offset & 0x1000);
    #[cfg(target_arch = "x86_64")]
    if Vectors::in_use() == Vectors::Avx512 {
        // SAFETY: the host has the feature, and the places are inside pages.
        return unsafe { avx512::gather(pages, &places, to) };
    }
    for (word, to) in to.into_iter().enumerate() {
        for (to, place) in to.iter_mut().zip(places) {
            let page = pages[(place as usize / PAGE_SIZE) & 1];
            *to = page.load_aligned_u32(place as usize + 4 * word);
        }
    }
}

/// Gathers as [`gather`], from pages: number times 4096, plus an offset rounded down to a multiple of 4.
///
/// # Panics
///
/// A page does not exist, or words cross its end.
#[inline(always)]
pub fn gather_from<const WORDS: usize>(
    pages: &[Page<'_>],
    places: &[u32; GATHER_LANES],
    to: [&mut [u32; GATHER_LANES]; WORDS],
) {
    const { assert!(WORDS == 2 || WORDS == 4) };
    #[cfg(target_arch = "x86_64")]
    if Vectors::in_use() == Vectors::Avx512 {
        // SAFETY: the host has the feature.
        return unsafe { avx512::gather_from(pages, places, to) };
    }
    for (word, to) in to.into_iter().enumerate() {
        for (to, &place) in to.iter_mut().zip(places) {
            let (page, offset) = (place as usize / PAGE_SIZE, place as usize & 0xffc);
            assert!(
                offset + 4 * WORDS <= PAGE_SIZE,
                "words cross the end of a page"
            );
            assert!(page < pages.len(), "a page is missing");
            *to = pages[page].load_aligned_u32(offset + 4 * word);
        }
    }
}

impl Page<'_> {
    /// A word per lane at the offset's low 12 bits, rounded down to a multiple of 4; each in one access.
    #[inline(always)]
    pub fn gather_words(&self, offsets: &[u32; GATHER_LANES], to: &mut [u32; GATHER_LANES]) {
        #[cfg(target_arch = "x86_64")]
        if Vectors::in_use() == Vectors::Avx512 {
            // SAFETY: the host has the feature.
            return unsafe { avx512::gather_words(self, offsets, to) };
        }
        for (to, &offset) in to.iter_mut().zip(offsets) {
            *to = self.load_aligned_u32(offset as usize);
        }
    }

    /// Stores words as `gather_words` loads them; the last lane comes last.
    #[inline(always)]
    pub fn scatter_words(&self, offsets: &[u32; GATHER_LANES], from: &[u32; GATHER_LANES]) {
        #[cfg(target_arch = "x86_64")]
        if Vectors::in_use() == Vectors::Avx512 {
            // SAFETY: as above.
            return unsafe { avx512::scatter_words(self, offsets, from) };
        }
        for (&from, &offset) in from.iter().zip(offsets) {
            self.store_aligned_u32(offset as usize, from);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::{GATHER_LANES, PAGE_SIZE, Page};

    /// 16 bytes into a quarter. The compiler does not see through assembler, so the access is like an atomic one;
    /// aligned words are not split.
    ///
    /// # Safety
    ///
    /// So many bytes are readable at `from`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn read_quarter<const QUARTER: usize>(vector: __m512i, from: *const u8) -> __m512i {
        let mut vector = vector;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("vinserti32x4 {0}, {0}, xmmword ptr [{1}], {2}", inout(zmm_reg) vector, in(reg) from, const QUARTER, options(nostack, preserves_flags, readonly));
        }
        vector
    }

    /// Reads as [`read_quarter`], 8 bytes into each half.
    ///
    /// # Safety
    ///
    /// So many bytes are readable at these addresses.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn read_halves(low: *const u8, high: *const u8) -> __m128i {
        let vector;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("vmovq {0}, qword ptr [{1}]", "vmovhps {0}, {0}, qword ptr [{2}]", out(xmm_reg) vector, in(reg) low, in(reg) high, options(nostack, preserves_flags, readonly));
        }
        vector
    }

    /// # Safety
    ///
    /// The words at all places are inside the pages.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn gather<const WORDS: usize>(
        pages: [&Page<'_>; 2],
        places: &[u32; GATHER_LANES],
        to: [&mut [u32; GATHER_LANES]; WORDS],
    ) {
        let bases = pages.map(|page| page.as_ptr().cast_const());
        let lane = |lane: usize| {
            let place = places[lane] as usize;
            // SAFETY: the caller's promise.
            unsafe { bases[(place / PAGE_SIZE) & 1].add(place % PAGE_SIZE) }
        };
        // SAFETY: the caller's promise; the pages are valid memory while borrowed.
        unsafe { gather_lanes(lane, to) }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn gather_from<const WORDS: usize>(
        pages: &[Page<'_>],
        places: &[u32; GATHER_LANES],
        to: [&mut [u32; GATHER_LANES]; WORDS],
    ) {
        // SAFETY: there are 64 bytes.
        let all = unsafe { _mm512_loadu_si512(places.as_ptr().cast()) };
        let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
        let numbers = _mm512_srli_epi32::<{ PAGE_SIZE.ilog2() }>(all);
        let missing = _mm512_cmpge_epu32_mask(numbers, _mm512_set1_epi32(count as i32));
        assert!(missing == 0, "a page is missing");
        let offsets = _mm512_and_si512(all, _mm512_set1_epi32(0xffc));
        let last = _mm512_set1_epi32((PAGE_SIZE - 4 * WORDS) as i32);
        assert!(
            _mm512_cmpgt_epu32_mask(offsets, last) == 0,
            "words cross the end of a page"
        );
        let lane = |lane: usize| {
            let (number, offset) = (
                places[lane] as usize / PAGE_SIZE,
                places[lane] as usize & 0xffc,
            );
            // SAFETY: no page is missing, and the offsets are inside pages.
            unsafe {
                pages
                    .get_unchecked(number)
                    .as_ptr()
                    .cast_const()
                    .add(offset)
            }
        };
        // SAFETY: offsets leave room for all words in their pages, which are valid memory while borrowed.
        unsafe { gather_lanes(lane, to) }
    }

    /// # Safety
    ///
    /// So many words are readable at each lane's address.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather_lanes<const WORDS: usize>(
        lane: impl Fn(usize) -> *const u8,
        to: [&mut [u32; GATHER_LANES]; WORDS],
    ) {
        let rows = if WORDS == 2 {
            let two = |n: usize| {
                // SAFETY: the caller's promise.
                unsafe { read_halves(lane(n), lane(n + 1)) }
            };
            let eight = |n: usize| {
                let vector = _mm512_castsi128_si512(two(n));
                let vector = _mm512_inserti32x4::<1>(vector, two(n + 2));
                let vector = _mm512_inserti32x4::<2>(vector, two(n + 4));
                _mm512_inserti32x4::<3>(vector, two(n + 6))
            };
            let (a, b) = (eight(0), eight(8));
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
            let (low, high) = (
                _mm512_permutex2var_epi32(a, even, b),
                _mm512_permutex2var_epi32(a, odd, b),
            );
            [low, high, low, high]
        } else {
            let four = |n: usize| {
                let vector = _mm512_setzero_si512();
                // SAFETY: the caller's promise.
                unsafe {
                    let vector = read_quarter::<0>(vector, lane(n));
                    let vector = read_quarter::<1>(vector, lane(n + 4));
                    let vector = read_quarter::<2>(vector, lane(n + 8));
                    read_quarter::<3>(vector, lane(n + 12))
                }
            };
            let (a, b, c, d) = (four(0), four(1), four(2), four(3));
            // Four words by four lanes in each quarter.
            let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
            let low = [_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd)];
            let (ab, cd) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
            let high = [_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd)];
            [low[0], low[1], high[0], high[1]]
        };
        for (to, words) in to.into_iter().zip(rows) {
            // SAFETY: there are 64 bytes.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) };
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn offsets_in_page(offsets: &[u32; GATHER_LANES]) -> __m512i {
        // SAFETY: there are 64 bytes.
        let offsets = unsafe { _mm512_loadu_si512(offsets.as_ptr().cast()) };
        _mm512_and_si512(offsets, _mm512_set1_epi32(0xffc))
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn gather_words(
        page: &Page<'_>,
        offsets: &[u32; GATHER_LANES],
        to: &mut [u32; GATHER_LANES],
    ) {
        // SAFETY: the words are inside the page, valid memory while borrowed; there are 64 bytes on this side. As in
        // `read_quarter`, the access is like an atomic one.
        unsafe {
            let offsets = offsets_in_page(offsets);
            let words: __m512i;
            asm!(
                "kxnorw {all}, {all}, {all}",
                "vpxord {words}, {words}, {words}",
                "vpgatherdd {words}{{{all}}}, [{base} + {offsets}]",
                all = out(kreg) _,
                words = out(zmm_reg) words,
                offsets = in(zmm_reg) offsets,
                base = in(reg) page.as_ptr(),
                options(nostack, preserves_flags, readonly),
            );
            _mm512_storeu_si512(to.as_mut_ptr().cast(), words);
        }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn scatter_words(
        page: &Page<'_>,
        offsets: &[u32; GATHER_LANES],
        from: &[u32; GATHER_LANES],
    ) {
        // SAFETY: as for `gather_words`.
        unsafe {
            let offsets = offsets_in_page(offsets);
            let words = _mm512_loadu_si512(from.as_ptr().cast());
            asm!(
                "kxnorw {all}, {all}, {all}",
                "vpscatterdd [{base} + {offsets}]{{{all}}}, {words}",
                all = out(kreg) _,
                words = in(zmm_reg) words,
                offsets = in(zmm_reg) offsets,
                base = in(reg) page.as_ptr(),
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bus, Ram};

    fn check<const WORDS: usize>(ram: &Ram, first: u64, offsets: [u32; GATHER_LANES]) {
        let pages = [first, first + PAGE_SIZE as u64].map(|at| ram.page(at).unwrap());
        let mut rows = [[0; GATHER_LANES]; WORDS];
        gather([&pages[0], &pages[1]], &offsets, rows.each_mut());
        let mut others = [[0; GATHER_LANES]; WORDS];
        gather_from(&pages, &offsets, others.each_mut());
        assert_eq!(rows, others);
        for (lane, offset) in offsets.into_iter().enumerate() {
            for (word, row) in rows.iter().enumerate() {
                let mut bytes = [0; 4];
                ram.read(first + u64::from(offset) + 4 * word as u64, &mut bytes)
                    .unwrap();
                assert_eq!(
                    row[lane],
                    u32::from_le_bytes(bytes),
                    "lane {lane} word {word}"
                );
            }
        }
    }

    #[test]
    fn a_gather_reads_what_single_loads_read() {
        let ram = Ram::new(16).unwrap();
        let first = ram.allocate_contiguous(2).unwrap();
        let bytes: Vec<u8> = (0..2 * PAGE_SIZE as u32)
            .flat_map(|n| [n as u8 ^ (n >> 8) as u8])
            .collect();
        ram.write(first, &bytes).unwrap();
        let edges = [
            0, 4, 4080, 4096, 4100, 8176, 16, 12, 4076, 8172, 8, 4080, 0, 20, 4096, 4,
        ];
        let spread = std::array::from_fn(|lane| lane as u32 * 508);
        for offsets in [edges, spread, [4096; 16]] {
            let offsets =
                offsets.map(|at: u32| at - (at % 4096).saturating_sub(4080).next_multiple_of(4));
            check::<2>(&ram, first, offsets);
            check::<4>(&ram, first, offsets);
        }
        check::<2>(
            &ram,
            first,
            [
                4088, 8184, 0, 8, 4096, 4104, 4088, 8184, 0, 0, 0, 0, 0, 0, 0, 4,
            ],
        );
    }

    #[test]
    fn a_gather_stays_in_its_pages() {
        let ram = Ram::new(16).unwrap();
        let first = ram.allocate_contiguous(2).unwrap();
        let pages = [first, first + PAGE_SIZE as u64].map(|at| ram.page(at).unwrap());
        pages[0].store_u32(4092, 7);
        pages[1].store_u32(4092, 9);
        let mut rows = [[0; GATHER_LANES]; 4];
        // They are moved back; bits above the second page are ignored.
        gather(
            [&pages[0], &pages[1]],
            &std::array::from_fn(|lane| if lane < 8 { 4093 } else { u32::MAX }),
            rows.each_mut(),
        );
        assert_eq!(
            rows[3],
            std::array::from_fn(|lane| if lane < 8 { 7 } else { 9 })
        );
    }

    #[test]
    #[should_panic(expected = "a page is missing")]
    fn a_gather_from_a_page_that_is_not_there_panics() {
        let ram = Ram::new(1).unwrap();
        let pages = [ram.page(ram.allocate().unwrap()).unwrap()];
        let mut places = [0; GATHER_LANES];
        places[7] = 2 * PAGE_SIZE as u32;
        gather_from(&pages, &places, [[0; GATHER_LANES]; 2].each_mut());
    }

    #[test]
    fn words_are_gathered_and_scattered_lane_by_lane() {
        let ram = Ram::new(1).unwrap();
        let page = ram.page(ram.allocate().unwrap()).unwrap();
        for at in 0..PAGE_SIZE / 4 {
            page.store_u32(4 * at, 7 * at as u32);
        }
        let offsets = std::array::from_fn(|lane| (lane as u32 * 1212 + 3) & !u32::from(lane < 8));
        let mut words = [0; GATHER_LANES];
        page.gather_words(&offsets, &mut words);
        assert_eq!(words, offsets.map(|at| 7 * (at % 4096 / 4)));

        page.fill_u64(0);
        page.scatter_words(&offsets, &words);
        let sum: u64 = (0..PAGE_SIZE / 4)
            .map(|at| u64::from(page.load_u32(4 * at)))
            .sum();
        assert_eq!(sum, words.iter().map(|&word| u64::from(word)).sum());
        for (offset, word) in offsets.into_iter().zip(words) {
            assert_eq!(page.load_u32(offset as usize & !3), word);
        }
        page.scatter_words(&[8; GATHER_LANES], &std::array::from_fn(|lane| lane as u32));
        assert_eq!(page.load_u32(8), 15);
    }
}
