// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages that tracks reach.

use std::collections::HashSet;

use gpureplay_memory::Page;

use crate::core::Core;
use crate::operations::planned::Pages;

#[derive(Debug, Default)]
pub(crate) struct Reached {
    pub(super) read: Pages,
    pub(super) written: Pages,
    /// Tracks rely on threads' own storage. Stores to it are known by address, so no page may be written at two.
    pub(super) has_private: bool,
}

/// Per page, here and where it is looked up.
const PAGE_BYTES: usize = 128;

impl Reached {
    pub(super) fn count(&self) -> (usize, usize) {
        (self.read.addresses().len(), self.written.addresses().len())
    }

    pub(super) fn truncate(&mut self, (read, written): (usize, usize)) {
        self.read.truncate(read);
        self.written.truncate(written);
    }

    pub(super) fn bytes(&self) -> usize {
        let (read, written) = self.count();
        (read + written) * PAGE_BYTES
    }
}

#[derive(Debug, Default)]
pub(crate) struct Resolved<'s> {
    pub(super) read: Vec<Page<'s>>,
    pub(super) written: Vec<Page<'s>>,
    /// Host addresses of the first `apart` pages written.
    seen: HashSet<usize>,
    apart: usize,
    aliased: bool,
}

impl<'s> Resolved<'s> {
    pub(super) fn complete(&mut self, reached: &Reached, core: &mut Core<'s>) -> bool {
        let tables = [
            (&mut self.read, &reached.read, &mut core.read),
            (&mut self.written, &reached.written, &mut core.write),
        ];
        for (pages, reached, table) in tables {
            while let Some(&va) = reached.addresses().get(pages.len()) {
                let Some(page) = table.get(va) else {
                    return false;
                };
                pages.push(page);
            }
        }
        !reached.has_private || self.are_apart()
    }

    fn are_apart(&mut self) -> bool {
        for page in &self.written[self.apart..] {
            self.aliased |= !self.seen.insert(page.as_ptr() as usize);
        }
        self.apart = self.written.len();
        !self.aliased
    }
}
