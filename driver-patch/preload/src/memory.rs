// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the app and the GPU change, by page.

use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_trace::PAGE_SIZE;

pub(crate) const WORDS: usize = PAGE_SIZE / 8;

pub(crate) trait View: Send {
    /// Words of whole pages.
    fn words(&self) -> &[AtomicU64];
}

pub(crate) type Page = [u8; PAGE_SIZE];

/// Another thread may write meanwhile.
pub(crate) fn copy(words: &[AtomicU64]) -> Page {
    let mut page = [0; PAGE_SIZE];
    for (to, from) in page.as_chunks_mut().0.iter_mut().zip(words) {
        *to = from.load(Ordering::Relaxed).to_ne_bytes();
    }
    page
}

/// Never 0. Equal numbers count as equal pages: 64 bits, four independent lanes of multiplications by odd
/// constants.
fn mix(words: impl Iterator<Item = [u64; 4]>) -> u64 {
    let mut lanes: [u64; 4] = [
        0x243f_6a88_85a3_08d3,
        0x1319_8a2e_0370_7344,
        0xa409_3822_299f_31d0,
        0x082e_fa98_ec4e_6c89,
    ];
    for four in words {
        for (lane, word) in lanes.iter_mut().zip(four) {
            let mixed = (*lane ^ word).wrapping_mul(0xd131_0ba6_98df_b5ad);
            *lane = mixed ^ mixed >> 29;
        }
    }
    let all = lanes.iter().fold(0u64, |all, lane| {
        let mixed = (all ^ lane).wrapping_mul(0x9216_d5d9_8979_fb1b);
        mixed ^ mixed >> 32
    });
    all.max(1)
}

pub(crate) fn hash(words: &[AtomicU64]) -> u64 {
    // An array's `map` is a call for each four words in some builds.
    mix(words.as_chunks().0.iter().map(|[a, b, c, d]| {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        [load(a), load(b), load(c), load(d)]
    }))
}

pub(crate) fn hash_of(page: &Page) -> u64 {
    let words = page.as_chunks::<8>().0.as_chunks().0;
    mix(words.iter().map(|[a, b, c, d]| {
        let load = |word: &[u8; 8]| u64::from_ne_bytes(*word);
        [load(a), load(b), load(c), load(d)]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_bit_of_a_page_counts() {
        let page: Vec<AtomicU64> = (0..WORDS as u64).map(|n| AtomicU64::new(n / 3)).collect();
        let first = hash(&page);
        assert_eq!(first, hash_of(&copy(&page)));
        let mut seen = HashSet::from([first]);
        for word in &page {
            for bit in 0..64 {
                word.fetch_xor(1 << bit, Ordering::Relaxed);
                assert!(seen.insert(hash(&page)));
                word.fetch_xor(1 << bit, Ordering::Relaxed);
            }
        }
        assert_eq!(hash(&page), first);
    }

    #[test]
    fn words_that_change_places_count() {
        let page: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let mut seen = HashSet::new();
        for word in &page {
            word.store(7, Ordering::Relaxed);
            assert!(seen.insert(hash(&page)));
            word.store(0, Ordering::Relaxed);
        }
    }
}
