// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages that tracks reach.

use mali_memory::Page;

use crate::core::Core;
use crate::operations::planned::Pages;

/// The pages that the loads and stores of tracks reach.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    pub(super) read: Pages,
    pub(super) written: Pages,
}

/// The same while a dispatch runs.
#[derive(Debug, Default)]
pub(crate) struct Resolved<'s> {
    pub(super) read: Vec<Page<'s>>,
    pub(super) written: Vec<Page<'s>>,
}

impl<'s> Resolved<'s> {
    /// Looks up what is not there yet. False if a page cannot be reached.
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
        true
    }
}
