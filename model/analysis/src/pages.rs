// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded values per page.

use std::collections::HashMap;

pub(crate) const PAGE: u64 = 4096;

const RECENT: usize = 256;

pub(crate) struct Pages<T> {
    index: HashMap<u64, u32>,
    pages: Vec<(u64, Box<T>)>,
    /// By low bits of page numbers.
    recent: Vec<(u64, u32)>,
    most: usize,
    pub(crate) full: bool,
}

impl<T: Default> Pages<T> {
    pub(crate) fn new(most: usize) -> Pages<T> {
        Pages {
            index: HashMap::new(),
            pages: Vec::new(),
            recent: vec![(u64::MAX, 0); RECENT],
            most: most.min(u32::MAX as usize),
            full: false,
        }
    }

    /// `None`: no room.
    #[inline]
    pub(crate) fn page(&mut self, number: u64) -> Option<&mut T> {
        let (known, at) = self.recent[number as usize % RECENT];
        if known == number {
            return self.pages.get_mut(at as usize).map(|(_, page)| &mut **page);
        }
        self.find(number)
    }

    #[inline(never)]
    fn find(&mut self, number: u64) -> Option<&mut T> {
        let at = match self.index.get(&number) {
            Some(&at) => at,
            None if self.pages.len() >= self.most => {
                self.full = true;
                return None;
            }
            None => {
                let at = self.pages.len() as u32;
                self.pages.push((number, Box::default()));
                self.index.insert(number, at);
                at
            }
        };
        self.recent[number as usize % RECENT] = (number, at);
        self.pages.get_mut(at as usize).map(|(_, page)| &mut **page)
    }

    pub(crate) fn sorted(&self) -> Vec<(u64, &T)> {
        let mut all: Vec<_> = self.pages.iter().map(|(n, page)| (*n, &**page)).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    pub(crate) fn into_pages(self) -> impl Iterator<Item = (u64, Box<T>)> {
        self.pages.into_iter()
    }
}

/// Number, offset, length per page.
pub(crate) fn by_page(address: u64, bytes: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = address;
    let mut left = bytes;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let offset = at % PAGE;
        let length = left.min(PAGE - offset);
        let part = (at / PAGE, offset as usize, length as usize);
        at = at.wrapping_add(length);
        left -= length;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_a_bound_and_keep_what_they_have() {
        let mut pages = Pages::<u32>::new(2);
        *pages.page(1).unwrap() = 5;
        *pages.page(257).unwrap() += 7;
        assert_eq!(
            pages.page(1).copied(),
            Some(5),
            "as another with the same low bits"
        );
        assert!(!pages.full && pages.page(3).is_none());
        assert!(pages.full);
        assert_eq!(pages.sorted(), [(1, &5), (257, &7)]);
    }

    #[test]
    fn ranges_are_cut_at_pages() {
        let parts: Vec<_> = by_page(4090, 4110).collect();
        assert_eq!(parts, [(0, 4090, 6), (1, 0, 4096), (2, 0, 8)]);
    }
}
