// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gathers: two or four words for each of sixteen lanes, each lane's from its own place in one page or two.

#[cfg(target_arch = "x86_64")]
use crate::Vectors;
use crate::{PAGE_SIZE, Page};

/// Lanes of a gather.
pub const GATHER_LANES: usize = 16;

/// Reads WORDS (2 or 4) words for each lane: word `w` of lane `l` goes to `to[w][l]`. An offset below 4096 counts from the
/// start of the first page, one of 4096 or more from that of the second, 4096 bytes on; it is rounded down to a
/// multiple of 4, and so far that all words are in the page. Each word is read whole.
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
        // SAFETY: the host has the feature, and the places are inside of pages.
        return unsafe { avx512::gather(pages, &places, to) };
    }
    for (word, to) in to.into_iter().enumerate() {
        for (to, place) in to.iter_mut().zip(places) {
            let page = pages[(place as usize / PAGE_SIZE) & 1];
            *to = page.load_aligned_u32(place as usize + 4 * word);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::{GATHER_LANES, PAGE_SIZE, Page};

    /// Reads 16 bytes (8 if WORDS is 2) of shared memory. The compiler does not look into assembler code, so that the
    /// access is as good as an atomic one; the processor does not split an aligned word of it.
    ///
    /// # Safety
    ///
    /// So many bytes are readable at `from`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn vector<const WORDS: usize>(from: *const u8) -> __m128i {
        let vector;
        // SAFETY: the caller's promise.
        unsafe {
            if WORDS == 2 {
                asm!("vmovq {}, qword ptr [{}]", out(xmm_reg) vector, in(reg) from, options(nostack, preserves_flags, readonly));
            } else {
                asm!("vmovdqu {}, xmmword ptr [{}]", out(xmm_reg) vector, in(reg) from, options(nostack, preserves_flags, readonly));
            }
        }
        vector
    }

    /// As [`super::gather`].
    ///
    /// # Safety
    ///
    /// The words at all places are inside of the pages.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn gather<const WORDS: usize>(
        pages: [&Page<'_>; 2],
        places: &[u32; GATHER_LANES],
        to: [&mut [u32; GATHER_LANES]; WORDS],
    ) {
        let bases = pages.map(|page| page.as_ptr().cast_const());
        let lane = |lane: usize| {
            let place = places[lane] as usize;
            let base = bases[(place / PAGE_SIZE) & 1];
            // SAFETY: the caller's promise; the page is valid memory while it is borrowed.
            unsafe { vector::<WORDS>(base.add(place % PAGE_SIZE)) }
        };
        // Lanes n, n + 4, n + 8 and n + 12 side by side.
        let four = |n: usize| {
            let vector = _mm512_castsi128_si512(lane(n));
            let vector = _mm512_inserti32x4::<1>(vector, lane(n + 4));
            let vector = _mm512_inserti32x4::<2>(vector, lane(n + 8));
            _mm512_inserti32x4::<3>(vector, lane(n + 12))
        };
        let (a, b, c, d) = (four(0), four(1), four(2), four(3));
        // Squares of four words by four lanes are transposed in each quarter.
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        let low = [_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd)];
        let (ab, cd) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        let high = [_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd)];
        for (to, words) in to.into_iter().zip(low.into_iter().chain(high)) {
            // SAFETY: there are 64 bytes.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) };
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
        // The last places that fit in each page, the first ones, and all over both.
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
        // Offsets that do not fit are moved back, and bits above the second page are ignored.
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
}
