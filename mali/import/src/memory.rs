// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins regions and page tables.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnosis::MAX_DIAGNOSED;
use crate::files::PAGE;
use crate::{Contents, Diagnosis, History, PageTables, Ranges};

const MAX_PAGES: u64 = 1 << 20;
/// First register of address space 0, bytes between address spaces, their number.
const AS_REGISTERS: (u32, u32, u32) = (0x2400, 0x40, 16);

/// Mapped pages with the same access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRun {
    /// First GPU address.
    pub start: u64,
    /// After the last page.
    pub end: u64,
    /// The GPU may write.
    pub write: bool,
    /// The GPU may execute.
    pub execute: bool,
}

/// Mapped memory, in runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Ascending, disjoint.
    pub runs: Vec<MappedRun>,
}

impl Image {
    /// Collects mapped pages, and regions freed before the tables' dump. `None`: more than 4 GiB.
    pub fn new(tables: &PageTables, contents: &Contents) -> Option<Image> {
        let mut total = tables.leaves.len() as u64;
        for region in &contents.regions {
            let committed = region.committed();
            total = total.checked_add((committed.end - committed.start) / PAGE)?;
        }
        if total > MAX_PAGES {
            return None;
        }
        let mut pages: BTreeMap<u64, (bool, bool)> = tables
            .leaves
            .iter()
            .map(|(&va, leaf)| (va, (leaf.write, leaf.execute)))
            .collect();
        for region in &contents.regions {
            for va in region.committed().step_by(PAGE as usize) {
                pages
                    .entry(va)
                    .or_insert((region.write(), region.execute()));
            }
        }
        let mut runs: Vec<MappedRun> = Vec::new();
        for (va, (write, execute)) in pages {
            match runs.last_mut() {
                Some(run) if run.end == va && (run.write, run.execute) == (write, execute) => {
                    run.end += PAGE;
                }
                _ => runs.push(MappedRun {
                    start: va,
                    end: va + PAGE,
                    write,
                    execute,
                }),
            }
        }
        Some(Image { runs })
    }

    fn mapped(&self) -> Vec<Range<u64>> {
        let mut mapped: Vec<Range<u64>> = Vec::new();
        for run in &self.runs {
            match mapped.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => mapped.push(run.start..run.end),
            }
        }
        mapped
    }
}

/// Ranges ascend and do not touch.
fn covers(mapped: &[Range<u64>], start: u64, end: u64) -> bool {
    let next = mapped.partition_point(|run| run.end <= start);
    let run = mapped.get(next);
    start >= end || run.is_some_and(|run| run.start <= start && end <= run.end)
}

pub(crate) fn cross_check(
    history: &History,
    tables: &PageTables,
    contents: &Contents,
    ranges: &Ranges,
    diagnoses: &mut Vec<Diagnosis>,
) {
    check_root(history, tables, diagnoses);
    check_regions(tables, contents, diagnoses);
    check_leaves(tables, contents, diagnoses);
    check_physical(tables, contents, diagnoses);
    if let Some(image) = Image::new(tables, contents) {
        let mapped = image.mapped();
        let lost = ranges
            .ranges
            .iter()
            .filter(|range| !covers(&mapped, range.start, range.end))
            .take(MAX_DIAGNOSED);
        diagnoses.extend(lost.map(|range| Diagnosis::RangeNotMapped {
            index: range.index,
            start: range.start,
        }));
    }
}

fn check_root(history: &History, tables: &PageTables, diagnoses: &mut Vec<Diagnosis>) {
    let (first, stride, count) = AS_REGISTERS;
    let mut given = None;
    for space in 0..count {
        let low = history.writes(first + stride * space);
        let high = history.writes(first + stride * space + 4);
        for (low, high) in low.zip(high) {
            let root = (u64::from(high) << 32 | u64::from(low)) & 0xffff_ffff_f000;
            if root == tables.root {
                return;
            }
            if root != 0 {
                given = Some(root);
            }
        }
    }
    if let Some(history) = given {
        diagnoses.push(Diagnosis::RootMismatch {
            tables: tables.root,
            history,
        });
    }
}

fn check_regions(tables: &PageTables, contents: &Contents, diagnoses: &mut Vec<Diagnosis>) {
    let leaves: Vec<u64> = tables.leaves.keys().copied().collect();
    let mapped = |start: u64, end: u64| {
        let below = |limit: u64| leaves.partition_point(|&va| va < limit) as u64;
        below(end) - below(start)
    };
    let mut listed = 0;
    for region in &contents.regions {
        let committed = region.committed();
        let of = (committed.end - committed.start) / PAGE;
        let pages = of - mapped(committed.start, committed.end);
        if pages > 0 && listed < MAX_DIAGNOSED {
            listed += 1;
            diagnoses.push(Diagnosis::RegionNotMapped {
                start: region.start,
                pages,
                of,
            });
        }
    }
    let mut sorted: Vec<_> = contents.regions.iter().map(|r| r.committed()).collect();
    sorted.sort_by_key(|r| (r.start, r.end));
    let mut overlaps = 0;
    let mut widest = 0..0;
    for region in sorted {
        let common = widest.end.min(region.end).saturating_sub(region.start);
        if common > 0 && overlaps < MAX_DIAGNOSED {
            overlaps += 1;
            diagnoses.push(Diagnosis::RegionsOverlap {
                first: widest.start,
                second: region.start,
                pages: common / PAGE,
            });
        }
        if region.end > widest.end {
            widest = region;
        }
    }
}

fn check_leaves(tables: &PageTables, contents: &Contents, diagnoses: &mut Vec<Diagnosis>) {
    let mut regions: Vec<_> = contents.regions.iter().map(|r| r.start..r.end).collect();
    regions.sort_by_key(|r| r.start);
    let mut next = 0;
    let mut end = 0;
    let mut lost: Option<(u64, u64)> = None;
    for &va in tables.leaves.keys() {
        while regions.get(next).is_some_and(|r| r.start <= va) {
            end = end.max(regions[next].end);
            next += 1;
        }
        if va >= end {
            let (_, pages) = lost.get_or_insert((va, 0));
            *pages += 1;
        }
    }
    if let Some((va, pages)) = lost {
        diagnoses.push(Diagnosis::LeafWithoutRegion { pages, va });
    }
}

fn check_physical(tables: &PageTables, contents: &Contents, diagnoses: &mut Vec<Diagnosis>) {
    let mut different = contents.pages.iter().filter(|(va, page)| {
        tables
            .leaves
            .get(va)
            .is_some_and(|leaf| leaf.physical != page.physical & 0xffff_ffff_f000)
    });
    if let Some((&va, _)) = different.next() {
        let pages = 1 + different.count() as u64;
        diagnoses.push(Diagnosis::PhysicalMismatch { pages, va });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tables::Leaf;
    use crate::{MemoryRegion, files};

    fn leaf(physical: u64) -> Leaf {
        Leaf {
            physical,
            write: true,
            execute: false,
        }
    }

    fn region(start: u64, pages: u64) -> MemoryRegion {
        MemoryRegion {
            start,
            end: start + pages * PAGE,
            pages,
            flags: 0x606e,
            dumped: false,
        }
    }

    #[test]
    fn tables_and_freed_regions_have_as_much_as_a_recording_may() {
        let image = |regions: &[MemoryRegion]| {
            let mut tables = PageTables::default();
            tables.leaves.insert(0x1000, leaf(0x1000));
            let mut contents = Contents::default();
            contents.regions = regions.to_vec();
            Image::new(&tables, &contents)
        };
        let most = region(0x10_0000, MAX_PAGES - 1);
        assert_eq!(image(&[most]).unwrap().runs.len(), 2);
        assert_eq!(image(&[most, region(0x8000_0000_0000, 1)]), None);
        assert_eq!(image(&[region(0x10_0000, MAX_PAGES)]), None);
    }

    #[test]
    fn runs_of_any_access_are_mapped() {
        let mut tables = PageTables::default();
        for page in 1..9 {
            let access = Leaf {
                write: page % 2 == 0,
                ..leaf(page * PAGE)
            };
            tables.leaves.insert(page * PAGE, access);
        }
        tables.leaves.insert(16 * PAGE, leaf(0));
        let image = Image::new(&tables, &Contents::default()).unwrap();
        assert_eq!(image.runs.len(), 9);
        let mapped = image.mapped();
        assert_eq!(mapped, [PAGE..9 * PAGE, 16 * PAGE..17 * PAGE]);
        for (start, end, expected) in [
            (PAGE, 9 * PAGE, true),
            (PAGE + 1, 2 * PAGE + 1, true),
            (PAGE - 1, 2 * PAGE, false),
            (8 * PAGE, 9 * PAGE + 1, false),
            (9 * PAGE, 9 * PAGE + 1, false),
            (8 * PAGE, 17 * PAGE, false),
            (16 * PAGE, 17 * PAGE, true),
            (17 * PAGE, 18 * PAGE, false),
            (20 * PAGE, 20 * PAGE, true),
        ] {
            assert_eq!(covers(&mapped, start, end), expected, "{start:x}..{end:x}");
        }
    }

    #[test]
    fn disagreements_are_named() {
        let mut tables = PageTables::default();
        for va in [0x1000, 0x2000, 0x9000] {
            tables.leaves.insert(va, leaf(va << 4));
        }
        tables.root = 0x5000;
        let mut contents = Contents::default();
        contents.regions = vec![region(0x1000, 4), region(0x2000, 1)];
        contents.pages.insert(
            0x2000,
            files::contents::Page {
                physical: 0x3000,
                bytes: 0..0,
            },
        );
        let mut d = Vec::new();
        let history = b"0,W,0x2400,00006000\n0,W,0x2404,00000000";
        let history = History::parse(history, &mut d).unwrap();
        let range = |index, start, end| crate::Range { index, start, end };
        let ranges = Ranges {
            ranges: vec![range(0, 0x1000, 0x4fff), range(1, 0x4000, 0x5001)],
        };
        cross_check(&history, &tables, &contents, &ranges, &mut d);
        let names: Vec<_> = d.iter().map(Diagnosis::name).collect();
        assert_eq!(
            names,
            [
                "root-mismatch",
                "region-not-mapped",
                "regions-overlap",
                "leaf-without-region",
                "physical-mismatch",
                "range-not-mapped"
            ]
        );
        let image = Image::new(&tables, &contents).unwrap();
        assert_eq!(image.runs.len(), 2);
        assert_eq!(image.mapped(), [0x1000..0x5000, 0x9000..0xa000]);
        assert_eq!((image.runs[0].start, image.runs[0].end), (0x1000, 0x5000));
    }
}
