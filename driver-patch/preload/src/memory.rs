// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the app and the GPU change, by page.

use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_trace::PAGE_SIZE;

pub(crate) const WORDS: usize = PAGE_SIZE / 8;

pub(crate) trait View: Send {
    /// Words of whole pages.
    fn words(&self) -> &[AtomicU64];
}

pub(crate) trait Word {
    fn load(&self) -> u64;
}

impl Word for u64 {
    fn load(&self) -> u64 {
        *self
    }
}

impl Word for AtomicU64 {
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Relaxed)
    }
}

pub(crate) type Page = [u64; WORDS];

pub(crate) fn copy(words: &[AtomicU64; WORDS]) -> Page {
    let mut page = [0; WORDS];
    for (to, from) in page.iter_mut().zip(words) {
        *to = from.load(Ordering::Relaxed);
    }
    page
}

/// Never 0, which means that the trace does not have the page.
pub(crate) fn hash(words: &[impl Word; WORDS]) -> u64 {
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("aes") {
        // SAFETY: the processor has AES, and NEON with it.
        return unsafe { aes::hash(words) }.max(1);
    }
    mix(words).max(1)
}

fn mix(words: &[impl Word; WORDS]) -> u64 {
    let mut lanes: [u64; 4] = [
        0x243f_6a88_85a3_08d3,
        0x1319_8a2e_0370_7344,
        0xa409_3822_299f_31d0,
        0x082e_fa98_ec4e_6c89,
    ];
    for four in words.as_chunks::<4>().0 {
        for (lane, word) in lanes.iter_mut().zip(four) {
            let mixed = (*lane ^ word.load()).wrapping_mul(0xd131_0ba6_98df_b5ad);
            *lane = mixed ^ mixed >> 29;
        }
    }
    lanes.iter().fold(0, |all, lane| {
        let mixed = (all ^ lane).wrapping_mul(0x9216_d5d9_8979_fb1b);
        mixed ^ mixed >> 32
    })
}

/// Half of the instructions of [`mix`].
#[cfg(target_arch = "aarch64")]
mod aes {
    use std::arch::aarch64::{
        uint8x16_t, vaddq_u64, vaeseq_u8, vaesmcq_u8, vdupq_n_u64, vgetq_lane_u64,
        vreinterpretq_u8_u64, vreinterpretq_u64_u8, vsetq_lane_u64,
    };

    use super::{WORDS, Word};

    /// Not symmetric: otherwise words could change places unnoticed.
    const SEEDS: [[u64; 2]; 6] = [
        [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344],
        [0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89],
        [0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c],
        [0xc0ac_29b7_c97c_50dd, 0x3f84_d5b5_b547_0917],
        [0x9216_d5d9_8979_fb1b, 0xd131_0ba6_98df_b5ac],
        [0x2ffd_72db_d01a_dfb7, 0xb8e1_afed_6a26_7e96],
    ];

    #[derive(Clone, Copy)]
    #[repr(C, packed(8))]
    struct Block(uint8x16_t);

    /// Changes may cancel in a chain of AES rounds or in its sum, not in both.
    #[target_feature(enable = "neon,aes")]
    pub(super) fn hash(words: &[impl Word; WORDS]) -> u64 {
        let round = |lane, block| vaesmcq_u8(vaeseq_u8(lane, block));
        let seed = |[low, high]: [u64; 2]| {
            vreinterpretq_u8_u64(vsetq_lane_u64::<1>(high, vdupq_n_u64(low)))
        };
        let [a, b, c, d, second, last] = SEEDS.map(|words| seed(words));
        let mut lanes = [a, b, c, d].map(|seed| (seed, vdupq_n_u64(0)));
        for sixteen in words.as_chunks::<16>().0 {
            let blocks = sixteen.as_ptr().cast::<Block>();
            for index in 0..8 {
                // SAFETY: sixteen words are eight blocks, each loaded once.
                let Block(block) = unsafe { blocks.add(index).read_volatile() };
                let (chain, sum) = &mut lanes[index % 4];
                *chain = round(*chain, block);
                *sum = vaddq_u64(*sum, vreinterpretq_u64_u8(block));
            }
        }
        let mixed = |block| round(round(block, second), last);
        let lanes = lanes.map(|(chain, sum)| mixed(round(chain, vreinterpretq_u8_u64(sum))));
        let all = vreinterpretq_u64_u8(mixed(lanes.into_iter().fold(a, round)));
        vgetq_lane_u64::<0>(all) ^ vgetq_lane_u64::<1>(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn ways() -> Vec<fn(&[AtomicU64; WORDS]) -> u64> {
        vec![hash, |words| mix(words)]
    }

    #[test]
    fn every_bit_of_a_page_counts() {
        let page: [_; WORDS] = std::array::from_fn(|n| AtomicU64::new(n as u64 / 3));
        for hash in ways() {
            let first = hash(&page);
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
    }

    #[test]
    fn words_that_change_places_count() {
        let page: [_; WORDS] = std::array::from_fn(|_| AtomicU64::new(0));
        for hash in ways() {
            let mut seen = HashSet::new();
            for word in &page {
                word.store(7, Ordering::Relaxed);
                assert!(seen.insert(hash(&page)));
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn two_equal_changes_do_not_cancel() {
        let page: [_; WORDS] = std::array::from_fn(|_| AtomicU64::new(0));
        for hash in ways() {
            let mut seen = HashSet::from([hash(&page)]);
            for (index, first) in page.iter().enumerate().step_by(7) {
                first.store(1 << 63, Ordering::Relaxed);
                for second in &page[index + 1..] {
                    second.store(1 << 63, Ordering::Relaxed);
                    assert!(seen.insert(hash(&page)));
                    second.store(0, Ordering::Relaxed);
                }
                first.store(0, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn a_copy_counts_as_its_page() {
        let page: [_; WORDS] = std::array::from_fn(|n| AtomicU64::new(n as u64 * n as u64));
        assert_eq!(hash(&page), hash(&copy(&page)));
    }
}
