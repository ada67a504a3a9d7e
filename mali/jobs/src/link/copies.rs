// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of each chain's descriptors.

use std::collections::BTreeMap;

use mali_facts::job;

use crate::link::objects::{Object, Pointer};
use crate::link::survey::{Chain, PAGE, Survey, pages};

struct Page {
    bytes: Box<[u8; PAGE as usize]>,
    known: [u64; PAGE as usize / 64],
}

impl Page {
    fn know(&mut self, offset: usize, byte: u8) {
        self.bytes[offset] = byte;
        self.known[offset / 64] |= 1 << (offset % 64);
    }

    fn is_known(&self, offset: usize) -> bool {
        self.known[offset / 64] >> (offset % 64) & 1 == 1
    }
}

pub(crate) struct Copies {
    page_copies: Vec<BTreeMap<u64, u64>>,
    pub(crate) start: u64,
    pub(crate) pages: u64,
    contents: BTreeMap<u64, Page>,
}

impl Copies {
    pub(crate) fn new(survey: &Survey, start: u64) -> Self {
        let mut next = start;
        let mut page_copies = Vec::new();
        for chain in &survey.chains {
            let mut own = BTreeMap::new();
            for object in chain.objects() {
                for page in pages(object.address, object.end()) {
                    if survey.copied.contains(&page) {
                        own.insert(page, 0);
                    }
                }
            }
            for copy in own.values_mut() {
                *copy = next;
                next = next.saturating_add(PAGE);
            }
            page_copies.push(own);
        }
        let mut copies = Self {
            page_copies,
            start,
            pages: (next - start) / PAGE,
            contents: BTreeMap::new(),
        };
        for (number, chain) in survey.chains.iter().enumerate() {
            copies.fill(number, chain);
        }
        copies
    }

    pub(crate) fn place(&self, chain: usize, address: u64) -> u64 {
        let page = address - address % PAGE;
        let copy = self.page_copies.get(chain).and_then(|own| own.get(&page));
        copy.map_or(address, |copy| copy + address % PAGE)
    }

    pub(crate) fn moves(&self, chain: usize, found: &Chain) -> bool {
        let own = self.page_copies.get(chain);
        let moves =
            |address: u64| own.is_some_and(|own| own.contains_key(&(address - address % PAGE)));
        found.known
            && !found.jobs.is_empty()
            && found.jobs.iter().all(|(job, _)| moves(job.address))
    }

    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            let page = self.contents.entry(at - at % PAGE).or_insert_with(|| Page {
                bytes: Box::new([0; PAGE as usize]),
                known: [0; PAGE as usize / 64],
            });
            page.know((at % PAGE) as usize, *byte);
        }
    }

    fn fill(&mut self, number: usize, chain: &Chain) {
        let mut patches = Vec::new();
        for (address, bytes) in &chain.contents {
            self.write(self.place(number, *address), bytes);
        }
        for (job, reach) in &chain.jobs {
            for object in &reach.objects {
                let new = self.place(number, object.address);
                if new != object.address {
                    patches.extend(self.pointer(number, job.address, object, new));
                }
            }
        }
        for (address, bytes) in patches {
            self.write(address, &bytes);
        }
        for (job, _) in &chain.jobs {
            let at = self.place(number, job.address);
            if at != job.address {
                self.write(at, &[0; job::WRITTEN_BACK as usize]);
                let next = self.place(number, job.header.next());
                self.write(at + crate::link::objects::NEXT as u64, &next.to_le_bytes());
            }
        }
    }

    fn pointer(&self, chain: usize, job: u64, object: &Object, new: u64) -> Option<(u64, Vec<u8>)> {
        let (at, shift) = match object.pointer {
            Pointer::Chain | Pointer::Fixed => return None,
            Pointer::Job(offset) => (self.place(chain, job) + offset, 0),
            Pointer::Word { at, shift } => (self.place(chain, at), shift),
        };
        let moved = new.wrapping_sub(object.address) << shift;
        Some((at, self.word(at)?.wrapping_add(moved).to_le_bytes().into()))
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        for (at, byte) in (at..).zip(&mut bytes) {
            let page = self.contents.get(&(at - at % PAGE))?;
            *byte = page.bytes[(at % PAGE) as usize];
        }
        Some(u64::from_le_bytes(bytes))
    }

    /// Addresses and bytes, ascending, each in one page.
    pub(crate) fn uploads(&self) -> Vec<(u64, Vec<u8>)> {
        /// Bytes: a shorter gap costs less than an action.
        const GAP: usize = 32;
        let mut out: Vec<(u64, Vec<u8>)> = Vec::new();
        for (base, page) in &self.contents {
            let mut stretch: Option<(usize, usize)> = None;
            for at in (0..PAGE as usize).filter(|at| page.is_known(*at)) {
                stretch = match stretch {
                    Some((start, end)) if at - end <= GAP => Some((start, at + 1)),
                    Some((start, end)) => {
                        out.push((base + start as u64, page.bytes[start..end].to_vec()));
                        Some((at, at + 1))
                    }
                    None => Some((at, at + 1)),
                };
            }
            if let Some((start, end)) = stretch {
                out.push((base + start as u64, page.bytes[start..end].to_vec()));
            }
        }
        out
    }
}
