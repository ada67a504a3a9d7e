// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gr_mem_contents`: regions of GPU memory, with code and descriptors.
//!
//! Region: u64 first address, u64 end, u64 pages, u32 flags of the driver, u8 whether bytes follow. If so, each
//! page: u64 GPU address, u64 physical address, 4096 bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use mali_facts::Memory;

use super::{Cursor, PAGE};
use crate::Diagnosis;
use crate::diagnosis::MAX_DIAGNOSED;

const HEADER: usize = 29;
const ADDRESS_END: u64 = 1 << 48;
const GPU_WRITE: u32 = 1 << 2;
const GPU_NO_EXECUTE: u32 = 1 << 3;

/// A region as the driver kept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// First GPU address.
    pub start: u64,
    /// After the last page that may be committed.
    pub end: u64,
    /// Committed pages.
    pub pages: u64,
    /// Driver's flags.
    pub flags: u32,
    /// Its pages are in the file.
    pub dumped: bool,
}

impl MemoryRegion {
    /// The GPU may write.
    pub fn write(&self) -> bool {
        self.flags & GPU_WRITE != 0
    }

    /// The GPU may execute.
    pub fn execute(&self) -> bool {
        self.flags & GPU_NO_EXECUTE == 0
    }

    /// Addresses of the committed pages.
    pub fn committed(&self) -> Range<u64> {
        self.start
            ..self
                .start
                .saturating_add(self.pages.saturating_mul(PAGE))
                .min(self.end)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) physical: u64,
    pub(crate) bytes: Range<usize>,
}

/// Memory in a file.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    file: Vec<u8>,
    /// In file order.
    pub regions: Vec<MemoryRegion>,
    pub(crate) pages: BTreeMap<u64, Page>,
}

impl Contents {
    pub(crate) fn parse(file: Vec<u8>, diagnoses: &mut Vec<Diagnosis>) -> Contents {
        let mut contents = Contents::default();
        let mut cursor = Cursor::new(&file);
        let mut bogus = Vec::new();
        let mut listed = 0;
        let mut note = |diagnoses: &mut Vec<Diagnosis>, d| {
            listed += 1;
            if listed <= MAX_DIAGNOSED {
                diagnoses.push(d);
            }
        };
        for index in 0.. {
            let left = cursor.left();
            if left == 0 {
                break;
            }
            let Some((mut region, flag)) = header(&mut cursor) else {
                diagnoses.push(Diagnosis::StaleTail { bytes: left });
                break;
            };
            let (start, end) = (region.start, region.end);
            let shaped = start % PAGE == 0 && end % PAGE == 0 && start < end && end <= ADDRESS_END;
            if !shaped || flag > 1 {
                // Without its shape, the next region's start is unknown if pages follow.
                let last = flag != 0 || cursor.left() < HEADER;
                bogus.push((index, start, end));
                if last {
                    let rest = cursor.left();
                    if rest > 0 {
                        diagnoses.push(Diagnosis::StaleTail { bytes: rest });
                    }
                    break;
                }
                continue;
            }
            let room = (end - start) / PAGE;
            let stated = region.pages;
            if stated > room {
                note(
                    diagnoses,
                    Diagnosis::CountExceedsRegion {
                        start,
                        stated,
                        room,
                    },
                );
                region.pages = room;
            }
            if region.dumped {
                let found = contents.take_pages(&mut cursor, &region, stated, |d| {
                    note(diagnoses, d);
                });
                if found < stated {
                    diagnoses.push(Diagnosis::CountExceedsFile {
                        start,
                        stated,
                        found,
                    });
                    contents.regions.push(region);
                    if cursor.left() > 0 {
                        diagnoses.push(Diagnosis::StaleTail {
                            bytes: cursor.left(),
                        });
                    }
                    break;
                }
            }
            contents.regions.push(region);
        }
        let last = contents.regions.len() + bogus.len();
        for (index, start, end) in bogus.into_iter().take(MAX_DIAGNOSED) {
            diagnoses.push(if index + 1 == last {
                Diagnosis::BogusLastRegion { start, end }
            } else {
                Diagnosis::BogusRegion { index, start, end }
            });
        }
        contents.file = file;
        contents
    }

    fn take_pages(
        &mut self,
        cursor: &mut Cursor<'_>,
        region: &MemoryRegion,
        stated: u64,
        mut note: impl FnMut(Diagnosis),
    ) -> u64 {
        for found in 0..stated {
            let mut ahead = cursor.clone();
            let page = (|| {
                let (va, physical) = (ahead.u64()?, ahead.u64()?);
                let start = ahead.position();
                let bytes = ahead.take(PAGE as usize)?;
                Some((va, physical, start, bytes))
            })();
            let Some((va, physical, start, _)) = page else {
                return found;
            };
            *cursor = ahead;
            let inside = va % PAGE == 0 && (region.start..region.end).contains(&va);
            if !inside {
                note(Diagnosis::PageOutside {
                    va,
                    start: region.start,
                });
                continue;
            }
            let page = Page {
                physical,
                bytes: start..start + PAGE as usize,
            };
            if self.pages.insert(va, page).is_some() {
                note(Diagnosis::PageTwice { va });
            }
        }
        stated
    }

    /// Page at `va`, if the file has it.
    pub fn page(&self, va: u64) -> Option<&[u8]> {
        let page = self.pages.get(&va)?;
        self.file.get(page.bytes.clone())
    }

    /// GPU addresses of pages, ascending.
    pub fn page_addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }

    /// `None` if a page is missing.
    pub fn read(&self, va: u64, out: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < out.len() {
            let at = va.checked_add(done as u64)?;
            let offset = (at % PAGE) as usize;
            let count = (PAGE as usize - offset).min(out.len() - done);
            let page = self.page(at - at % PAGE)?;
            out[done..done + count].copy_from_slice(&page[offset..offset + count]);
            done += count;
        }
        Some(())
    }
}

impl Memory for Contents {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        Contents::read(self, va, to).is_some()
    }
}

fn header(cursor: &mut Cursor<'_>) -> Option<(MemoryRegion, u8)> {
    let mut ahead = cursor.clone();
    let (start, end, pages) = (ahead.u64()?, ahead.u64()?, ahead.u64()?);
    let (flags, dumped) = (ahead.u32()?, ahead.u8()?);
    *cursor = ahead;
    let region = MemoryRegion {
        start,
        end,
        pages,
        flags,
        dumped: dumped == 1,
    };
    Some((region, dumped))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, pages: u64, stated: u64, dumped: u8) -> Vec<u8> {
        let mut out = Vec::new();
        for word in [start, start + pages * PAGE, stated] {
            out.extend(word.to_le_bytes());
        }
        out.extend(0x606eu32.to_le_bytes());
        out.push(dumped);
        out
    }

    fn page(va: u64, byte: u8) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(va.to_le_bytes());
        out.extend(0x8000u64.to_le_bytes());
        out.extend([byte; 4096]);
        out
    }

    fn names(d: &[Diagnosis]) -> Vec<&'static str> {
        d.iter().map(Diagnosis::name).collect()
    }

    #[test]
    fn regions_and_pages() {
        let mut d = Vec::new();
        let file = [
            region(0x1000, 4, 4, 0),
            region(0x10000, 2, 2, 1),
            page(0x10000, 5),
            page(0x11000, 6),
        ];
        let c = Contents::parse(file.concat(), &mut d);
        assert_eq!(d, []);
        assert_eq!(c.regions.len(), 2);
        assert!(c.regions[0].write() && !c.regions[0].execute());
        let mut out = [0; 4];
        assert_eq!(c.read(0x10ffe, &mut out), Some(()));
        assert_eq!(out, [5, 5, 6, 6]);
        assert_eq!(c.read(0x11ffe, &mut out), None);
    }

    #[test]
    fn counts_beyond_the_file_and_stale_tails() {
        let mut d = Vec::new();
        let mut file = [region(0x10000, 8, 8, 1), page(0x10000, 5)].concat();
        file.extend([9; 100]);
        let c = Contents::parse(file, &mut d);
        assert_eq!(names(&d), ["count-exceeds-file", "stale-tail"]);
        assert_eq!(c.page_addresses().collect::<Vec<_>>(), [0x10000]);
        d.clear();
        let file = [region(0x1000, 1, 3, 0), vec![1; 28]].concat();
        Contents::parse(file, &mut d);
        assert_eq!(names(&d), ["count-exceeds-region", "stale-tail"]);
    }

    #[test]
    fn bogus_regions() {
        let mut d = Vec::new();
        let file = [region(0x1000, 1, 1, 0), region(0x1234, 0, 7, 0)].concat();
        let c = Contents::parse(file, &mut d);
        assert_eq!(names(&d), ["bogus-last-region"]);
        assert_eq!(c.regions.len(), 1);
        d.clear();
        let file = [region(0, 0, 0, 0), region(0x1000, 1, 1, 0)].concat();
        let c = Contents::parse(file, &mut d);
        assert_eq!(names(&d), ["bogus-region"]);
        assert_eq!(c.regions.len(), 1);
        d.clear();
        let file = [
            region(0x10000, 2, 2, 1),
            page(0x30000, 1),
            page(0x11000, 1),
            region(0x10000, 2, 1, 1),
            page(0x11000, 2),
        ];
        let c = Contents::parse(file.concat(), &mut d);
        assert_eq!(names(&d), ["page-outside", "page-twice"]);
        assert_eq!(c.page(0x11000).unwrap()[0], 2);
    }
}
