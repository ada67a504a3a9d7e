// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named defects of original recordings.

use std::collections::BTreeMap;

/// Per kind; others are counted.
pub(crate) const MAX_DIAGNOSED: usize = 16;

macro_rules! defects {
    ($($(#[$doc:meta])* $defect:ident = $name:literal, $file:literal, $text:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        /// Defect that the import works around.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Diagnosis {
            $($(#[$doc])* $defect { $($(#[$field_doc])* $field: $type,)* },)*
            /// More of a kind than are listed.
            More {
                /// Kind.
                name: &'static str,
                /// File with the defects.
                file: &'static str,
                /// Not listed.
                count: u64,
            },
        }

        impl Diagnosis {
            /// The defect's name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$defect { .. } => $name,)*
                    Self::More { name, .. } => name,
                }
            }

            /// File with the defect.
            pub const fn file(&self) -> &'static str {
                match self {
                    $(Self::$defect { .. } => $file,)*
                    Self::More { file, .. } => file,
                }
            }
        }

        impl std::fmt::Display for Diagnosis {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} in {}: ", self.name(), self.file())?;
                match self {
                    $(Self::$defect { $($field),* } => write!(f, $text),)*
                    Self::More { count, .. } => {
                        write!(f, "{count} more of these, which are not listed")
                    }
                }
            }
        }
    };
}

defects! {
    /// A malformed line is left out.
    HistoryLine = "history-line", "gr_io_history", "line {line} is no register access and is left out: {text:?}" {
        /// From 1.
        line: usize,
        /// Beginning of the line.
        text: String,
    }
    /// Wrong size field.
    TablesSize = "tables-size", "gr_pgt", "the file says it has {stated} bytes, it has {found}" {
        /// Bytes, by the size field.
        stated: u64,
        /// Bytes in the file.
        found: u64,
    }
    /// No end mark.
    TablesEnd = "tables-end", "gr_pgt", "no end mark; {left} bytes after the last whole table are left out" {
        /// Bytes left out.
        left: usize,
    }
    /// Bytes after the end mark.
    TablesTail = "tables-tail", "gr_pgt", "{bytes} bytes after the end mark are left out" {
        /// Number.
        bytes: usize,
    }
    /// Dumped twice; the first one counts.
    TableTwice = "table-twice", "gr_pgt", "table {table:#x} is dumped twice; the first one counts" {
        /// Physical address.
        table: u64,
    }
    /// Not in the file.
    TableMissing = "table-missing", "gr_pgt", "table {table:#x} for {va:#x} is not in the file" {
        /// Physical address.
        table: u64,
        /// First GPU address that it would map.
        va: u64,
    }
    /// At another level than its own.
    TableLevel = "table-level", "gr_pgt", "table {table:#x} of level {stated} is used at level {used}" {
        /// Physical address.
        table: u64,
        /// Level where it is used.
        used: u32,
        /// Its own level.
        stated: u32,
    }
    /// None of invalid, table, block or page.
    TableEntry = "table-entry", "gr_pgt", "entry {entry:#x} for {va:#x} is of no known type and is left out" {
        /// Entry.
        entry: u64,
        /// First GPU address that it would map.
        va: u64,
    }
    /// Not the one that the driver gave to the GPU.
    RootMismatch = "root-mismatch", "gr_pgt", "the root table is {tables:#x}, the driver gave the GPU {history:#x}" {
        /// Root in the page tables.
        tables: u64,
        /// Root in the register history.
        history: u64,
    }
    /// Senseless addresses; left out.
    BogusLastRegion = "bogus-last-region", "gr_mem_contents", "the last region ({start:#x} to {end:#x}) is left out" {
        /// First address.
        start: u64,
        /// End.
        end: u64,
    }
    /// Senseless addresses; left out.
    BogusRegion = "bogus-region", "gr_mem_contents", "region {index} ({start:#x} to {end:#x}) is left out" {
        /// Of the region.
        index: usize,
        /// First address.
        start: u64,
        /// End.
        end: u64,
    }
    /// The file has fewer pages than stated; they are taken.
    CountExceedsFile = "count-exceeds-file", "gr_mem_contents", "the region at {start:#x} says it has {stated} pages, the file holds {found}" {
        /// First address of the region.
        start: u64,
        /// Pages stated.
        stated: u64,
        /// Pages in the file.
        found: u64,
    }
    /// More pages than lie between its addresses.
    CountExceedsRegion = "count-exceeds-region", "gr_mem_contents", "the region at {start:#x} says it has {stated} pages, there is room for {room}" {
        /// First address of the region.
        start: u64,
        /// Pages stated.
        stated: u64,
        /// Pages between its addresses.
        room: u64,
    }
    /// Bytes after the last region.
    StaleTail = "stale-tail", "gr_mem_contents", "{bytes} bytes after the last region are left out" {
        /// Number.
        bytes: usize,
    }
    /// Outside of its region; left out.
    PageOutside = "page-outside", "gr_mem_contents", "page {va:#x} lies outside of its region at {start:#x} and is left out" {
        /// Address.
        va: u64,
        /// First address of the region.
        start: u64,
    }
    /// Dumped with different bytes; the last one counts.
    PageTwice = "page-twice", "gr_mem_contents", "page {va:#x} is dumped twice with different bytes; the last one counts" {
        /// Address.
        va: u64,
    }
    /// Pages elsewhere than the page tables say.
    PhysicalMismatch = "physical-mismatch", "gr_mem_contents", "{pages} pages from {va:#x} on lie elsewhere than the page tables say" {
        /// Number.
        pages: u64,
        /// First page's address.
        va: u64,
    }
    /// They were alive at different times.
    RegionsOverlap = "regions-overlap", "gr_mem_contents", "the regions at {first:#x} and {second:#x} share {pages} pages: they were alive at different times; both are mapped" {
        /// First address of the one.
        first: u64,
        /// First address of the other.
        second: u64,
        /// Pages in common.
        pages: u64,
    }
    /// It was freed before the tables' dump.
    RegionNotMapped = "region-not-mapped", "gr_mem_contents", "{pages} of {of} pages of the region at {start:#x} are not in the page tables: it was freed before they were dumped; it is mapped anyway" {
        /// First address of the region.
        start: u64,
        /// Pages without an entry.
        pages: u64,
        /// All pages.
        of: u64,
    }
    /// Mapped, but of no region.
    LeafWithoutRegion = "leaf-without-region", "gr_pgt", "{pages} pages from {va:#x} on belong to no region; they are mapped anyway" {
        /// Number.
        pages: u64,
        /// First page's address.
        va: u64,
    }
    /// The file has fewer ranges than stated; they are taken.
    RangesExceedFile = "ranges-exceed-file", "gr_sync_as", "the file says it has {stated} ranges, it has {found}" {
        /// Ranges stated.
        stated: u64,
        /// Ranges in the file.
        found: u64,
    }
    /// Bytes after the last range.
    RangesTail = "ranges-tail", "gr_sync_as", "{bytes} bytes after the last range are left out" {
        /// Number.
        bytes: usize,
    }
    /// Empty, or of another size than stated; left out.
    RangeShape = "range-shape", "gr_sync_as", "range {index} ({start:#x} to {end:#x}, size {size:#x}) is left out" {
        /// Of the range.
        index: usize,
        /// First address.
        start: u64,
        /// End.
        end: u64,
        /// Stated size.
        size: u64,
    }
    /// Not mapped; left out.
    RangeNotMapped = "range-not-mapped", "gr_sync_as", "range {index} at {start:#x} is not mapped and is left out" {
        /// Of the range.
        index: usize,
        /// First address.
        start: u64,
    }
    /// Its descriptors are not in the dump.
    JobNotCaptured = "job-not-captured", "gr_mem_contents", "the descriptor at {va:#x} of submission {submission} is not in the dump" {
        /// From 0.
        submission: usize,
        /// Address of the header.
        va: u64,
    }
    /// Type that is not replayed.
    JobType = "job-type", "gr_mem_contents", "the job at {va:#x} of submission {submission} is of type {kind}, which cannot be replayed" {
        /// From 0.
        submission: usize,
        /// Address of the header.
        va: u64,
        /// Type.
        kind: &'static str,
    }
    /// A loop, or longer than any chain.
    ChainEndless = "chain-endless", "gr_mem_contents", "the chain of submission {submission} does not end (at {va:#x})" {
        /// From 0.
        submission: usize,
        /// First header that is too many.
        va: u64,
    }
    /// Not DONE; the dump was taken afterwards.
    JobStatus = "job-status", "gr_mem_contents", "the job at {va:#x} of submission {submission} has status {status:#x}, not DONE, in the dump" {
        /// From 0.
        submission: usize,
        /// Address of the header.
        va: u64,
        /// Status word.
        status: u32,
    }
}

#[derive(Debug)]
pub(crate) struct Listed<'a> {
    list: &'a mut Vec<Diagnosis>,
    found: BTreeMap<&'static str, (&'static str, u64)>,
}

impl<'a> Listed<'a> {
    pub(crate) fn new(list: &'a mut Vec<Diagnosis>) -> Self {
        let found = BTreeMap::new();
        Self { list, found }
    }

    pub(crate) fn push(&mut self, diagnosis: Diagnosis) {
        let found = self.found.entry(diagnosis.name());
        let (_, count) = found.or_insert((diagnosis.file(), 0));
        *count += 1;
        if *count <= MAX_DIAGNOSED as u64 {
            self.list.push(diagnosis);
        }
    }

    pub(crate) fn finish(self) {
        let more = self.found.into_iter().filter_map(|(name, (file, found))| {
            let count = found.saturating_sub(MAX_DIAGNOSED as u64);
            (count > 0).then_some(Diagnosis::More { name, file, count })
        });
        self.list.extend(more);
    }
}

impl Diagnosis {
    /// Defects that this stands for.
    pub const fn count(&self) -> u64 {
        match self {
            Self::More { count, .. } => *count,
            _ => 1,
        }
    }
}
