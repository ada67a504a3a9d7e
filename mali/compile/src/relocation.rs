// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers with different addresses in two runs.
//!
//! When a runtime reuses freed memory depends on timing: a different word may be the same buffer's address. Within a
//! job, pages are renamed one to one, or whole buffers of one size. A word counts as an address only if it agrees with
//! the renaming that all the job's words suggest.

use std::collections::BTreeMap;

use gpureplay_trace::PAGE_SIZE;
use mali_facts::valhall::address_mode;

use crate::capture::{Buffer, Capture};
use crate::mapped::Mapped;
use crate::pages::{Moment, PageBytes, differing};

const PAGE: u64 = PAGE_SIZE as u64;

#[derive(Debug, Default)]
pub(crate) struct Renaming {
    to_second: Places,
    to_first: Places,
}

#[derive(Debug, Default)]
struct Places {
    pages: BTreeMap<u64, u64>,
    /// First address to end and the other run's first address.
    buffers: BTreeMap<u64, (u64, u64)>,
}

impl Places {
    fn of(&self, page: u64) -> Option<u64> {
        let moved = || {
            let (start, (end, other)) = self.buffers.range(..=page).next_back()?;
            (page < *end).then(|| other + (page - start))
        };
        self.pages.get(&page).copied().or_else(moved)
    }

    fn len(&self) -> usize {
        self.pages.len() + self.buffers.len()
    }
}

/// Bits of a packed address, without its low eight: Valhall's pointer to thread storage.
const PACKED_BITS: u32 = 48;
/// Place of the mode in such a word; see `LocalStorage` of `mali-facts`.
const PACKED_MODE: u32 = 60;
/// Low bits of a uniform-buffer table entry: its size.
const ENTRY_SIZE: u32 = 12;
/// Passes over a job's pages: one may tell where another is.
const ROUNDS: usize = 4;

/// What the four bytes at `at` may be if they belong to an address. A 64-bit address may begin at each word.
///
/// In order: a 32-bit address; the low or the high half of a 64-bit one; a uniform-buffer table entry; a packed
/// address. 0 where that cannot be, and bits outside the address.
fn addresses(page: &PageBytes, at: usize) -> [(u64, u64); 5] {
    let long = |at: Option<usize>| {
        let bytes = at.and_then(|at| page.get(at..)?.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let short = page.get(at..).and_then(|rest| rest.first_chunk());
    let short = short.map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let wide = |address: u64| match address >> 32 {
        0 => 0,
        _ => address,
    };
    let word = long(Some(at - at % 8));
    let is_packed =
        word >> PACKED_BITS == u64::from(address_mode::PACKED) << (PACKED_MODE - PACKED_BITS);
    let packed = match is_packed {
        true => (word & ((1 << PACKED_BITS) - 1)) << 8,
        false => 0,
    };
    [
        (short.into(), 0),
        (wide(long(Some(at))), 0),
        (wide(long(at.checked_sub(4))), 0),
        (word >> ENTRY_SIZE << 4, word & ((1 << ENTRY_SIZE) - 1)),
        (packed, 0),
    ]
}

impl Renaming {
    pub(crate) fn find(
        [first, second]: [&Capture; 2],
        mapped: &[Mapped<'_>; 2],
        job: usize,
    ) -> Renaming {
        let mut out = Renaming::default();
        let (one, other) = (&first.jobs[job], &second.jobs[job]);
        out.add(mapped, one.chain, other.chain);
        for (a, b) in one.headers.iter().zip(other.headers.iter()) {
            out.add(mapped, a.address, b.address);
        }
        let moment = Moment::before(job);
        let known = |c: &Capture, va: u64| c.memory.at(moment, va - va % PAGE).is_some();
        for _ in 0..ROUNDS {
            let before = out.to_second.len();
            for va in first.memory.changed(moment) {
                let other = out.second_page(*va);
                // Different buffers at one address say nothing of each other.
                if other == *va && differ(mapped, *va) {
                    continue;
                }
                let (a, b) = (
                    first.memory.page(moment, *va),
                    second.memory.page(moment, other),
                );
                for at in differing_words(a, b) {
                    for ((x, _), (y, _)) in addresses(a, at).into_iter().zip(addresses(b, at)) {
                        let both_known = || known(first, x) && known(second, y);
                        if x != y && (both_known() || same_place(mapped, x, y).is_some()) {
                            out.add(mapped, x, y);
                        }
                    }
                }
            }
            if out.to_second.len() == before {
                break;
            }
        }
        out
    }

    /// A buffer with the same size in both runs moves whole.
    fn add(&mut self, mapped: &[Mapped<'_>; 2], a: u64, b: u64) {
        let (page_a, page_b) = (a - a % PAGE, b - b % PAGE);
        if a % PAGE != b % PAGE
            || self.to_second.of(page_a).is_some()
            || self.to_first.of(page_b).is_some()
        {
            return;
        }
        match same_place(mapped, a, b) {
            Some((a, b)) if a.va != b.va => {
                let end = |buffer: Buffer| buffer.va.saturating_add(buffer.size);
                self.to_second.buffers.insert(a.va, (end(a), b.va));
                self.to_first.buffers.insert(b.va, (end(b), a.va));
            }
            _ => {
                self.to_second.pages.insert(page_a, page_b);
                self.to_first.pages.insert(page_b, page_a);
            }
        }
    }

    pub(crate) fn second_page(&self, va: u64) -> u64 {
        self.to_second.of(va).unwrap_or(va)
    }

    pub(crate) fn first_page(&self, va: u64) -> u64 {
        self.to_first.of(va).unwrap_or(va)
    }

    /// Offsets of four-byte words, without renamed addresses, and the number of those.
    pub(crate) fn different_words(&self, a: &PageBytes, b: &PageBytes) -> (Vec<usize>, u64) {
        let (mut out, mut renamed) = (Vec::new(), 0);
        let same = |x: u64, y: u64| {
            let page = self.to_second.of(x - x % PAGE);
            x % PAGE == y % PAGE && page.is_some_and(|page| page == y - y % PAGE)
        };
        for at in differing_words(a, b) {
            let mut pairs = addresses(a, at).into_iter().zip(addresses(b, at));
            match pairs.any(|((x, rest), (y, other))| rest == other && same(x, y)) {
                true => renamed += 1,
                false => out.push(at),
            }
        }
        (out, renamed)
    }
}

fn same_place(mapped: &[Mapped<'_>; 2], a: u64, b: u64) -> Option<(Buffer, Buffer)> {
    let [first, second] = mapped;
    let (one, other) = (first.holder(a)?.buffer, second.holder(b)?.buffer);
    (one.size == other.size && a - one.va == b - other.va).then_some((one, other))
}

fn differ(mapped: &[Mapped<'_>; 2], va: u64) -> bool {
    let [first, second] = mapped;
    let both = first.holder(va).zip(second.holder(va));
    both.is_some_and(|(one, other)| one.buffer != other.buffer)
}

fn differing_words(a: &PageBytes, b: &PageBytes) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for (start, end) in differing(a, b) {
        for at in (start - start % 4..end).step_by(4) {
            if out.last() != Some(&at) {
                out.push(at);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Headers, Job};

    fn page(words: &[u32]) -> PageBytes {
        let mut page = [0; PAGE_SIZE];
        for (to, word) in page.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        page
    }

    fn renamed(a: u64, b: u64) -> Renaming {
        let (first, second) = (Capture::default(), Capture::default());
        let mut renaming = Renaming::default();
        renaming.add(&[Mapped::new(&first), Mapped::new(&second)], a, b);
        renaming
    }

    #[test]
    fn a_packed_address_is_renamed_like_a_plain_one() {
        let renaming = renamed(0x1234_5000, 0x1238_9000);
        let packed = 1 << (PACKED_MODE - 32);
        let a = page(&[
            0x1234_5040,
            0,
            0x12_3450,
            packed,
            0x12_3450,
            0,
            0x12_3450,
            packed,
        ]);
        let b = page(&[
            0x1238_9040,
            0,
            0x12_3890,
            packed,
            0x12_3890,
            0,
            0x12_38a0,
            packed,
        ]);
        // A word without the mode is a number; another page is other memory.
        assert_eq!(renaming.different_words(&a, &b), (vec![16, 24], 2));
    }

    #[test]
    fn a_wide_address_may_begin_at_every_word() {
        let renaming = renamed(0x7fff_ff4f_2000, 0x7ffe_ffa9_0000);
        let a = page(&[
            5,
            0xff4f_2008,
            0x7fff,
            0xff4f_2008,
            0,
            0,
            0xff4f_2008,
            0x7fff,
        ]);
        let b = page(&[
            5,
            0xffa9_0008,
            0x7ffe,
            0xffa9_0008,
            0,
            0,
            0xffa9_000c,
            0x7ffe,
        ]);
        // Half of an address is a number, and so is one elsewhere in the page.
        assert_eq!(renaming.different_words(&a, &b), (vec![12, 24, 28], 2));
    }

    #[test]
    fn the_size_of_an_entry_must_be_equal() {
        let renaming = renamed(0x1234_5000, 0x1238_9000);
        let entry = |address: u32, size: u32| [address << 8 | size, address >> 24];
        let (a, b) = (0x1234_5040, 0x1238_9040);
        let one = page(&[entry(a, 0x105), entry(a, 0x105)].concat());
        let other = page(&[entry(b, 0x105), entry(b, 0x205)].concat());
        assert_eq!(renaming.different_words(&one, &other).0, [8]);
    }

    fn capture(buffer: Buffer, address: u64) -> Capture {
        let mut capture = Capture::default();
        let before = Moment::before(0);
        let at = Buffer {
            va: 0x1000,
            size: PAGE,
        };
        capture.mapped.insert(before, vec![at, buffer]);
        let mut bytes = [0; PAGE_SIZE];
        bytes[12..20].copy_from_slice(&address.to_le_bytes());
        capture.memory.set(before, 0x1000, Some(&bytes));
        capture.jobs.push(Job {
            slot: 0,
            config: 0,
            chain: 0x1000,
            headers: Headers::default(),
            stream: None,
            sequence: 0,
            duration_ns: 0,
        });
        capture
    }

    fn found(first: &Capture, second: &Capture) -> Renaming {
        let mut mapped = [Mapped::new(first), Mapped::new(second)];
        mapped.iter_mut().for_each(|mapped| mapped.go_to(0));
        Renaming::find([first, second], &mapped, 0)
    }

    #[test]
    fn of_a_buffer_that_nobody_wrote_all_pages_move() {
        let buffer = |va, size| Buffer { va, size };
        let (a, b) = (0x7fff_f000_0000, 0x7fff_e000_0000);
        let first = capture(buffer(a, 4 * PAGE), a + PAGE);
        let second = capture(buffer(b, 4 * PAGE), b + PAGE);
        let renaming = found(&first, &second);
        assert_eq!(renaming.second_page(a + 3 * PAGE), b + 3 * PAGE);
        assert_eq!(renaming.first_page(b), a);
        assert_eq!(renaming.second_page(a + 4 * PAGE), a + 4 * PAGE);
        for second in [
            capture(buffer(b, 5 * PAGE), b + PAGE),
            capture(buffer(b, 4 * PAGE), b + 2 * PAGE),
        ] {
            assert_eq!(found(&first, &second).second_page(a + PAGE), a + PAGE);
        }
    }
}
