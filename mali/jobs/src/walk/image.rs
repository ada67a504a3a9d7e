// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU memory as a recording has filled it.

use std::collections::BTreeMap;

use mali_facts::Memory;

const PAGE: u64 = 4096;
/// Pages with their own contents: 1 GiB.
const MAX_PAGES: usize = 1 << 18;

enum Page {
    Filled(u8),
    Own(Box<[u8; PAGE as usize]>),
}

/// Written pages; all others are zero.
#[derive(Default)]
pub struct Image {
    pages: BTreeMap<u64, Page>,
    own: usize,
}

/// Page's address, first and last byte in it, bytes before it.
fn parts(va: u64, length: u64) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let end = va.saturating_add(length);
    let mut at = va;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at - at % PAGE;
        let stop = end.min(page.saturating_add(PAGE));
        let part = (
            page,
            (at - page) as usize,
            (stop - page) as usize,
            (at - va) as usize,
        );
        at = stop;
        Some(part)
    })
}

impl Image {
    fn own(&mut self, page: u64) -> Option<&mut [u8; PAGE as usize]> {
        let entry = self.pages.entry(page).or_insert(Page::Filled(0));
        if let Page::Filled(byte) = *entry {
            self.own += 1;
            *entry = Page::Own(Box::new([byte; PAGE as usize]));
        }
        match entry {
            Page::Own(contents) if self.own <= MAX_PAGES => Some(contents),
            _ => None,
        }
    }

    pub(crate) fn write(&mut self, va: u64, bytes: &[u8]) -> Option<()> {
        for (page, start, end, done) in parts(va, bytes.len() as u64) {
            let from = bytes.get(done..)?.get(..end - start)?;
            self.own(page)?.get_mut(start..end)?.copy_from_slice(from);
        }
        Some(())
    }

    pub(crate) fn fill(&mut self, va: u64, length: u32, byte: u8) -> Option<()> {
        for (page, start, end, _) in parts(va, length.into()) {
            if end - start == PAGE as usize {
                if let Some(Page::Own(_)) = self.pages.insert(page, Page::Filled(byte)) {
                    self.own -= 1;
                }
            } else {
                self.own(page)?.get_mut(start..end)?.fill(byte);
            }
        }
        Some(())
    }
}

impl Memory for Image {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        if va.checked_add(to.len() as u64).is_none() {
            return false;
        }
        for (page, start, end, done) in parts(va, to.len() as u64) {
            let Some(part) = to.get_mut(done..).and_then(|to| to.get_mut(..end - start)) else {
                return false;
            };
            match self.pages.get(&page) {
                None => part.fill(0),
                Some(Page::Filled(byte)) => part.fill(*byte),
                Some(Page::Own(contents)) => part.copy_from_slice(&contents[start..end]),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let mut image = Image::default();
        image.fill(0x0fff, 0x2002, 7).unwrap();
        image.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
        let mut bytes = [0; 8];
        assert!(image.read(0x1ffc, &mut bytes));
        assert_eq!(bytes, [7, 7, 1, 2, 3, 4, 7, 7]);
        assert!(image.read(0x2ffd, &mut bytes));
        assert_eq!(bytes, [7, 7, 7, 7, 0, 0, 0, 0]);
        assert!(!image.read(u64::MAX - 3, &mut bytes));
        assert_eq!(image.own, 4);
    }
}
