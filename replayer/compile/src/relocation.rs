// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs of one app may put the same buffer at different addresses.
//!
//! A runtime reuses the memory of freed buffers when it comes across some, and when it does depends on timing. So a word that
//! differs between two runs may be the address of the same buffer. Within one job this renames pages one to one; a word counts
//! as such an address only if the renaming that all the job's words suggest agrees with it.

use std::collections::BTreeMap;

use gpureplay_trace::PAGE_SIZE;
use mali_facts::valhall::address_mode;

use crate::capture::Capture;
use crate::pages::{Moment, PageBytes, differing};

const PAGE: u64 = PAGE_SIZE as u64;

/// Which page of the second run takes the place of a page of the first, for one job.
#[derive(Debug, Default)]
pub(crate) struct Renaming {
    to_second: BTreeMap<u64, u64>,
    to_first: BTreeMap<u64, u64>,
}

/// Bits of a word that hold a packed address, without the address's low eight: Valhall's pointer to thread storage.
const PACKED_BITS: u32 = 48;
/// Where the mode of such a word lies; see `LocalStorage` of `mali-facts`.
const PACKED_MODE: u32 = 60;

/// The addresses that eight bytes may mean: a 64-bit or 32-bit address, an entry of a uniform-buffer table, or a packed address.
fn addresses(bytes: [u8; 8]) -> [u64; 4] {
    let word = u64::from_le_bytes(bytes);
    let packed = match word >> PACKED_BITS
        == u64::from(address_mode::PACKED) << (PACKED_MODE - PACKED_BITS)
    {
        true => (word & ((1 << PACKED_BITS) - 1)) << 8,
        false => 0,
    };
    [word & 0xffff_ffff, word >> 32, word >> 12 << 4, packed]
}

impl Renaming {
    /// The renaming that the words of these pages suggest; pages are at the same address in both runs.
    pub(crate) fn find(first: &Capture, second: &Capture, job: usize) -> Renaming {
        let mut out = Renaming::default();
        let pairs = first.jobs[job]
            .headers
            .iter()
            .zip(second.jobs[job].headers.iter());
        for (a, b) in pairs {
            out.add(a.address, b.address);
        }
        let moment = Moment::before(job);
        for va in first.memory.changed(moment) {
            let other = out.second_page(*va);
            let (a, b) = (
                first.memory.page(moment, *va),
                second.memory.page(moment, other),
            );
            for at in differing_words(a, b) {
                let (wa, wb) = (addresses(eight(a, at)), addresses(eight(b, at)));
                for (x, y) in wa.into_iter().zip(wb) {
                    let known =
                        |c: &Capture, va: u64| c.memory.at(moment, va - va % PAGE).is_some();
                    if x != y && x % PAGE == y % PAGE && known(first, x) && known(second, y) {
                        out.add(x, y);
                    }
                }
            }
        }
        out
    }

    /// Notes that two addresses mean the same, unless that contradicts what is known.
    fn add(&mut self, a: u64, b: u64) {
        let (page_a, page_b) = (a - a % PAGE, b - b % PAGE);
        if a % PAGE == b % PAGE
            && !self.to_second.contains_key(&page_a)
            && !self.to_first.contains_key(&page_b)
        {
            self.to_second.insert(page_a, page_b);
            self.to_first.insert(page_b, page_a);
        }
    }

    /// The second run's page for a page of the first.
    pub(crate) fn second_page(&self, va: u64) -> u64 {
        self.to_second.get(&va).copied().unwrap_or(va)
    }

    /// The first run's page for a page of the second.
    pub(crate) fn first_page(&self, va: u64) -> u64 {
        self.to_first.get(&va).copied().unwrap_or(va)
    }

    /// Offsets of the words that differ between two pages, except those that are the same address in both runs.
    pub(crate) fn different_words(&self, a: &PageBytes, b: &PageBytes) -> (Vec<usize>, u64) {
        let (mut out, mut renamed) = (Vec::new(), 0);
        for at in differing_words(a, b) {
            let (wa, wb) = (addresses(eight(a, at)), addresses(eight(b, at)));
            let same = |x: u64, y: u64| {
                let page = x - x % PAGE;
                x % PAGE == y % PAGE
                    && self
                        .to_second
                        .get(&page)
                        .is_some_and(|p| *p == y - y % PAGE)
            };
            let low = wa[0] == wb[0] || same(wa[0], wb[0]);
            let high = wa[1] == wb[1] || same(wa[1], wb[1]);
            // The size in a uniform-buffer table's entry is in the low twelve bits.
            let entry = same(wa[2], wb[2]) && eight(a, at)[0] == eight(b, at)[0];
            if (low && high) || entry || same(wa[3], wb[3]) {
                renamed += 1;
            } else {
                out.push(at);
            }
        }
        (out, renamed)
    }
}

/// Offsets of the aligned groups of eight bytes that differ.
fn differing_words(a: &PageBytes, b: &PageBytes) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for (start, end) in differing(a, b) {
        for at in (start - start % 8..end).step_by(8) {
            if out.last() != Some(&at) {
                out.push(at);
            }
        }
    }
    out
}

fn eight(page: &PageBytes, at: usize) -> [u8; 8] {
    let mut out = [0; 8];
    out.copy_from_slice(&page[at..at + 8]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[u64]) -> PageBytes {
        let mut page = [0; PAGE_SIZE];
        for (to, word) in page.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        page
    }

    #[test]
    fn a_packed_address_is_renamed_like_a_plain_one() {
        let mut renaming = Renaming::default();
        renaming.add(0x1234_5000, 0x1238_9000);
        let packed = 1 << PACKED_MODE;
        let a = page(&[
            0x1234_5040,
            packed | 0x12_3450,
            0x12_3450,
            packed | 0x12_3450,
        ]);
        let b = page(&[
            0x1238_9040,
            packed | 0x12_3890,
            0x12_3890,
            packed | 0x12_38a0,
        ]);
        // A word without the mode is a number, and another page is not the same memory.
        assert_eq!(renaming.different_words(&a, &b), (vec![16, 24], 2));
    }
}
