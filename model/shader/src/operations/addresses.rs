// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lanes' addresses have in common.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod wide;

use crate::rows::{CHUNK, GROUP, LANES, Row};

pub(super) const OFFSET: u32 = 4095;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) same: bool,
    /// One high word, aligned, not crossing a page's end.
    pub(crate) whole: bool,
    /// `whole`, in one page.
    pub(crate) page: bool,
    /// The first [`CHUNK`] lanes', repeated.
    pub(crate) repeat: bool,
    /// One address per group.
    pub(crate) flat: bool,
}

/// `align` is a power of two.
#[inline(always)]
pub(crate) fn pattern(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Pattern {
    choose!(
        portable: pattern_body(low, high, lanes, bytes, align),
        avx2: pattern_avx2(low, high, lanes, bytes, align),
        avx512: if lanes == LANES {
            wide::pattern(low, high, bytes, align)
        } else {
            pattern_avx2(low, high, lanes, bytes, align)
        },
    )
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn pattern_avx2(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Pattern {
    pattern_body(low, high, lanes, bytes, align)
}

#[inline(always)]
fn pattern_body(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Pattern {
    let (lows, highs) = (low.0.as_chunks::<CHUNK>().0, high.0.as_chunks::<CHUNK>().0);
    let chunks = lanes.min(LANES) / CHUNK;
    let (first, first_low, first_high) = (&lows[0], low.0[0], high.0[0]);
    let (mut same, mut repeat, mut flat) = ([0; CHUNK], [0; CHUNK], [0; CHUNK]);
    let (mut whole, mut page) = ([0; CHUNK], [0; CHUNK]);
    for (lows, highs) in lows.iter().zip(highs).take(chunks) {
        let groups = [lows[0], lows[GROUP]];
        for lane in 0..CHUNK {
            let (address, other) = (lows[lane], highs[lane] ^ first_high);
            same[lane] |= address ^ first_low | other;
            repeat[lane] |= address ^ first[lane] | other;
            flat[lane] |= address ^ groups[lane / GROUP] | other;
            // The top bit: the offset is above the last that fits.
            let crosses = (OFFSET + 1 - bytes).wrapping_sub(address & OFFSET) & 1 << 31;
            whole[lane] |= address & (align - 1) | crosses | other;
            page[lane] |= (address ^ first_low) & !OFFSET;
        }
    }
    let none = |of: [u32; CHUNK]| of == [0; CHUNK];
    let whole = none(whole);
    Pattern {
        same: none(same),
        whole,
        page: whole && none(page),
        repeat: none(repeat),
        flat: none(flat),
    }
}

/// First lane and extent of consecutive, aligned words in one page.
#[inline(always)]
pub(crate) fn run(low: &Row, high: &Row, mask: u64) -> Option<(usize, usize)> {
    let first = mask.trailing_zeros() as usize;
    let count = LANES.checked_sub(first + mask.leading_zeros() as usize)?;
    let start = *low.0.get(first)?;
    if start & 3 != 0 || (start & OFFSET) as usize + 4 * count > OFFSET as usize + 1 {
        return None;
    }
    let is = choose!(
        portable: is_run(low, high, mask, first),
        avx512: wide::is_run(low, high, mask, first),
    );
    is.then_some((first, count))
}

fn is_run(low: &Row, high: &Row, mask: u64, first: usize) -> bool {
    let start = low.0[first].wrapping_sub(4 * first as u32);
    let mut differs = 0;
    for lane in 0..LANES {
        let active = ((mask >> lane) as u32 & 1).wrapping_neg();
        let expected = start.wrapping_add(4 * lane as u32);
        differs |= (low.0[lane] ^ expected | high.0[lane] ^ high.0[first]) & active;
    }
    differs == 0
}

#[inline(always)]
pub(super) fn behind(low: &Row, bytes: u32, sums: &mut Row) -> bool {
    let carry = choose!(
        portable: add(low, bytes, sums),
        avx512: wide::add(low, bytes, sums),
    );
    !carry
}

fn add(low: &Row, bytes: u32, sums: &mut Row) -> bool {
    let mut carry = 0;
    for (sum, low) in sums.0.iter_mut().zip(low.0) {
        *sum = low.wrapping_add(bytes);
        carry |= u32::from(*sum < low);
    }
    carry != 0
}

/// Bit n: lanes 8 n to 8 n + 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) same: u32,
    /// In the first lane's page, aligned, not crossing its end.
    pub(crate) page: u32,
}

#[inline(always)]
pub(crate) fn common(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Common {
    choose!(
        portable: common_body(low, high, lanes, bytes, align),
        avx2: common_avx2(low, high, lanes, bytes, align),
        avx512: wide::common(low, high, lanes, bytes, align),
    )
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn common_avx2(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Common {
    common_body(low, high, lanes, bytes, align)
}

#[inline(always)]
fn common_body(low: &Row, high: &Row, lanes: usize, bytes: u32, align: u32) -> Common {
    let mut common = Common::default();
    let (lows, highs) = (low.0.as_chunks::<GROUP>().0, high.0.as_chunks::<GROUP>().0);
    let groups = lanes.min(LANES) / GROUP;
    for (group, (lows, highs)) in lows.iter().zip(highs).take(groups).enumerate() {
        let (mut low_differs, mut high_differs, mut misaligned, mut crosses) = (0, 0, 0, 0);
        for lane in 0..GROUP {
            low_differs |= lows[lane] ^ lows[0];
            high_differs |= highs[lane] ^ highs[0];
            misaligned |= lows[lane];
            crosses |= (OFFSET + 1 - bytes).wrapping_sub(lows[lane] & OFFSET);
        }
        let same = low_differs | high_differs == 0;
        let page = low_differs & !OFFSET | high_differs == 0
            && misaligned & (align - 1) == 0
            && crosses >> 31 == 0;
        common.same |= u32::from(same) << group;
        common.page |= u32::from(page) << group;
    }
    common
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn wide_functions_agree_with_portable_ones() {
        if gpureplay_memory::Vectors::of_host() < gpureplay_memory::Vectors::Avx512 {
            return;
        }
        let row = |f: &dyn Fn(u32) -> u32| Row(std::array::from_fn(|lane| f(lane as u32)));
        let mut lows: Vec<Row> = vec![
            row(&|_| 0x1000),
            row(&|_| 0x1ff8),
            row(&|lane| 0x1000 + 16 * lane),
            row(&|lane| 0x1000 + 16 * (lane % 16)),
            row(&|lane| 0x1000 + 16 * (lane % 8)),
            row(&|lane| 0x1000 + 16 * (lane / 8)),
            row(&|lane| 0x1000 + 16 * (lane / 16)),
            row(&|lane| 0x1e00 + 16 * lane),
            row(&|lane| 0x1004 + 16 * lane),
            row(&|lane| 0xffff_ff00u32.wrapping_add(16 * lane)),
        ];
        for lane in 0..LANES {
            for other in [0x1001, 0x2000, 0x1ff4, 0x1ff0] {
                let mut odd = row(&|_| 0x1000);
                odd.0[lane] = other;
                lows.push(odd);
            }
        }
        let mut highs = vec![row(&|_| 0), row(&|_| 7)];
        highs.extend([0, 1, 17, 63].map(|at| row(&|lane| u32::from(lane == at))));
        let (mut seen, mut groups) = ([0; 5], 0);
        for low in &lows {
            for high in &highs {
                for (bytes, align) in [(1, 1), (4, 4), (8, 8), (12, 4), (16, 8)] {
                    let body = pattern_body(low, high, LANES, bytes, align);
                    // SAFETY: the host has the feature.
                    assert_eq!(unsafe { wide::pattern(low, high, bytes, align) }, body);
                    for lanes in [CHUNK, LANES] {
                        let body = common_body(low, high, lanes, bytes, align);
                        // SAFETY: as above.
                        let wide = unsafe { wide::common(low, high, lanes, bytes, align) };
                        assert_eq!(wide, body);
                        groups += (body.same | body.page).count_ones();
                    }
                    let facts = [body.same, body.whole, body.page, body.repeat, body.flat];
                    for (seen, fact) in seen.iter_mut().zip(facts) {
                        *seen += u32::from(fact);
                    }
                }
            }
        }
        assert!(seen.iter().all(|&seen| seen > 0), "{seen:?}");
        assert!(groups > 1000, "{groups}");

        let masks = [u64::MAX, 1, 1 << 63, 0xff, 0xff00, 0x0f0f << 20, !1, 6];
        let mut runs = 0;
        for (low, high) in lows
            .iter()
            .flat_map(|low| highs.iter().map(move |high| (low, high)))
        {
            for mask in masks {
                let first = mask.trailing_zeros() as usize;
                let is = is_run(low, high, mask, first);
                // SAFETY: as above.
                assert_eq!(unsafe { wide::is_run(low, high, mask, first) }, is);
                runs += u32::from(is);
            }
        }
        for step in [4, 8] {
            let mut low = row(&|lane| 0x1000 + step * lane);
            for lane in 0..LANES {
                for mask in masks {
                    let first = mask.trailing_zeros() as usize;
                    let is = is_run(&low, &highs[0], mask, first);
                    let found = run(&low, &highs[0], mask);
                    assert_eq!(found.is_some(), is);
                    runs += u32::from(is);
                }
                low.0[lane] ^= 4;
            }
        }
        assert!(runs > 100);

        let mut carries = 0;
        for low in &lows {
            for bytes in [0, 4, 252, 0xffc] {
                let (mut sums, mut others) = (Row::ZERO, Row::ZERO);
                let carry = add(low, bytes, &mut sums);
                // SAFETY: as above.
                assert_eq!(unsafe { wide::add(low, bytes, &mut others) }, carry);
                assert_eq!(sums.0, others.0);
                carries += u32::from(carry);
            }
        }
        assert!(carries > 0);
    }
}
