// SPDX-License-Identifier: MIT OR Apache-2.0
//! The defects of original recordings, each with a name.

use std::collections::BTreeMap;

/// Defects of one kind that are listed one by one.
pub(crate) const MAX_DIAGNOSED: usize = 16;

/// Something wrong with an original recording that the import works around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// A line of the history does not parse and is left out.
    HistoryLine {
        /// Number of the line, from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// The page tables' own size field differs from the length of the file.
    TablesSize {
        /// What the file says.
        stated: u64,
        /// How long it is.
        found: u64,
    },
    /// The page tables have no end mark.
    TablesEnd {
        /// Bytes after the last whole table.
        left: usize,
    },
    /// Bytes follow the end mark of the page tables.
    TablesTail {
        /// How many.
        bytes: usize,
    },
    /// A table occurs twice; the first one counts.
    TableTwice {
        /// Its physical address in the recording.
        table: u64,
    },
    /// An entry points at a table that is not in the file.
    TableMissing {
        /// The physical address it names.
        table: u64,
        /// First GPU address that it would map.
        va: u64,
    },
    /// A table is dumped for another level than the one where it is used.
    TableLevel {
        /// Its physical address.
        table: u64,
        /// The level where it is used.
        used: u32,
        /// The level it is dumped for.
        stated: u32,
    },
    /// An entry is none of invalid, table, block or page.
    TableEntry {
        /// The entry.
        entry: u64,
        /// First GPU address that it would map.
        va: u64,
    },
    /// The root table is not the one that the driver gave to the GPU.
    RootMismatch {
        /// In the page tables.
        tables: u64,
        /// In the register history.
        history: u64,
    },
    /// The last region of the memory dump is no region: its addresses make no sense. It is left out.
    BogusLastRegion {
        /// Its first address.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// A region that is not the last has addresses that make no sense. It is left out.
    BogusRegion {
        /// Index of the region.
        index: usize,
        /// Its first address.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// A region says that it has more pages than the file holds; those that are there are taken.
    CountExceedsFile {
        /// First address of the region.
        start: u64,
        /// Pages it says it has.
        stated: u64,
        /// Pages in the file.
        found: u64,
    },
    /// A region says that it has more pages than lie between its addresses.
    CountExceedsRegion {
        /// First address of the region.
        start: u64,
        /// Pages it says it has.
        stated: u64,
        /// Pages between its addresses.
        room: u64,
    },
    /// Bytes at the end of the memory dump belong to no region.
    StaleTail {
        /// How many.
        bytes: usize,
    },
    /// A page is dumped at an address outside of its region, and is left out.
    PageOutside {
        /// Its address.
        va: u64,
        /// First address of the region.
        start: u64,
    },
    /// A page is dumped more than once with different bytes; the last one counts.
    PageTwice {
        /// Its address.
        va: u64,
    },
    /// Dumped pages whose physical address is not that of the page tables.
    PhysicalMismatch {
        /// How many.
        pages: u64,
        /// The first one.
        va: u64,
    },
    /// Two regions overlap: they were alive at different times.
    RegionsOverlap {
        /// First address of the one.
        first: u64,
        /// First address of the other.
        second: u64,
        /// Pages in common.
        pages: u64,
    },
    /// A region has pages that the page tables do not map: it was freed before they were dumped.
    RegionNotMapped {
        /// First address of the region.
        start: u64,
        /// Pages without an entry.
        pages: u64,
        /// All its pages.
        of: u64,
    },
    /// Leaf entries map pages that no region covers.
    LeafWithoutRegion {
        /// How many pages.
        pages: u64,
        /// The first one.
        va: u64,
    },
    /// The count of synchronised ranges exceeds the file; those that are there are taken.
    RangesExceedFile {
        /// Stated count.
        stated: u64,
        /// Ranges in the file.
        found: u64,
    },
    /// Bytes follow the synchronised ranges.
    RangesTail {
        /// How many.
        bytes: usize,
    },
    /// A synchronised range is empty, or its size is not the distance of its addresses. It is left out.
    RangeShape {
        /// Index of the range.
        index: usize,
        /// First address.
        start: u64,
        /// End.
        end: u64,
        /// Stated size.
        size: u64,
    },
    /// A synchronised range is not mapped. It is left out.
    RangeNotMapped {
        /// Index of the range.
        index: usize,
        /// First address.
        start: u64,
    },
    /// A chain was started whose job descriptors are not in the memory dump.
    JobNotCaptured {
        /// Number of the submission, from 0.
        submission: usize,
        /// Address of the header.
        va: u64,
    },
    /// A job is of a type that a replay does not support.
    JobType {
        /// Number of the submission, from 0.
        submission: usize,
        /// Address of the header.
        va: u64,
        /// Its type.
        kind: &'static str,
    },
    /// A chain is a loop, or longer than any chain can be.
    ChainEndless {
        /// Number of the submission, from 0.
        submission: usize,
        /// Address of the header that is one too many.
        va: u64,
    },
    /// The dump was taken after the jobs ran, and this job did not end with DONE.
    JobStatus {
        /// Number of the submission, from 0.
        submission: usize,
        /// Address of the header.
        va: u64,
        /// Its status word.
        status: u32,
    },
    /// More defects of a kind than are listed.
    More {
        /// The kind's name.
        name: &'static str,
        /// The file that they are found in.
        file: &'static str,
        /// How many are not listed.
        count: u64,
    },
}

/// Defects as they are found: of each kind the first ones are listed, the others counted.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    list: &'a mut Vec<Diagnosis>,
    /// By name: the file, and how many there are.
    found: BTreeMap<&'static str, (&'static str, u64)>,
}

impl<'a> Listed<'a> {
    /// Defects go to this list.
    pub(crate) fn new(list: &'a mut Vec<Diagnosis>) -> Self {
        let found = BTreeMap::new();
        Self { list, found }
    }

    /// Lists a defect, or counts it.
    pub(crate) fn push(&mut self, diagnosis: Diagnosis) {
        let found = self.found.entry(diagnosis.name());
        let (_, count) = found.or_insert((diagnosis.file(), 0));
        *count += 1;
        if *count <= MAX_DIAGNOSED as u64 {
            self.list.push(diagnosis);
        }
    }

    /// Says how many were only counted.
    pub(crate) fn finish(self) {
        let more = self.found.into_iter().filter_map(|(name, (file, found))| {
            let count = found.saturating_sub(MAX_DIAGNOSED as u64);
            (count > 0).then_some(Diagnosis::More { name, file, count })
        });
        self.list.extend(more);
    }
}

impl Diagnosis {
    /// How many defects this stands for.
    pub const fn count(&self) -> u64 {
        match self {
            Self::More { count, .. } => *count,
            _ => 1,
        }
    }

    /// The defect's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HistoryLine { .. } => "history-line",
            Self::TablesSize { .. } => "tables-size",
            Self::TablesEnd { .. } => "tables-end",
            Self::TablesTail { .. } => "tables-tail",
            Self::TableTwice { .. } => "table-twice",
            Self::TableMissing { .. } => "table-missing",
            Self::TableLevel { .. } => "table-level",
            Self::TableEntry { .. } => "table-entry",
            Self::RootMismatch { .. } => "root-mismatch",
            Self::BogusLastRegion { .. } => "bogus-last-region",
            Self::BogusRegion { .. } => "bogus-region",
            Self::CountExceedsFile { .. } => "count-exceeds-file",
            Self::CountExceedsRegion { .. } => "count-exceeds-region",
            Self::StaleTail { .. } => "stale-tail",
            Self::PageOutside { .. } => "page-outside",
            Self::PageTwice { .. } => "page-twice",
            Self::PhysicalMismatch { .. } => "physical-mismatch",
            Self::RegionsOverlap { .. } => "regions-overlap",
            Self::RegionNotMapped { .. } => "region-not-mapped",
            Self::LeafWithoutRegion { .. } => "leaf-without-region",
            Self::RangesExceedFile { .. } => "ranges-exceed-file",
            Self::RangesTail { .. } => "ranges-tail",
            Self::RangeShape { .. } => "range-shape",
            Self::RangeNotMapped { .. } => "range-not-mapped",
            Self::JobNotCaptured { .. } => "job-not-captured",
            Self::JobType { .. } => "job-type",
            Self::ChainEndless { .. } => "chain-endless",
            Self::JobStatus { .. } => "job-status",
            Self::More { name, .. } => name,
        }
    }

    /// The file it is found in.
    pub const fn file(&self) -> &'static str {
        match self {
            Self::HistoryLine { .. } => "gr_io_history",
            Self::TablesSize { .. }
            | Self::TablesEnd { .. }
            | Self::TablesTail { .. }
            | Self::TableTwice { .. }
            | Self::TableMissing { .. }
            | Self::TableLevel { .. }
            | Self::TableEntry { .. }
            | Self::RootMismatch { .. }
            | Self::LeafWithoutRegion { .. } => "gr_pgt",
            Self::RangesExceedFile { .. }
            | Self::RangesTail { .. }
            | Self::RangeShape { .. }
            | Self::RangeNotMapped { .. } => "gr_sync_as",
            Self::More { file, .. } => file,
            _ => "gr_mem_contents",
        }
    }
}

impl std::fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}: ", self.name(), self.file())?;
        match self {
            Self::HistoryLine { line, text } => {
                write!(
                    f,
                    "line {line} is no register access and is left out: {text:?}"
                )
            }
            Self::TablesSize { stated, found } => {
                write!(f, "the file says it has {stated} bytes, it has {found}")
            }
            Self::TablesEnd { left } => {
                write!(
                    f,
                    "no end mark; {left} bytes after the last whole table are left out"
                )
            }
            Self::TablesTail { bytes } => {
                write!(f, "{bytes} bytes after the end mark are left out")
            }
            Self::TableTwice { table } => {
                write!(f, "table {table:#x} is dumped twice; the first one counts")
            }
            Self::TableMissing { table, va } => {
                write!(f, "table {table:#x} for {va:#x} is not in the file")
            }
            Self::TableLevel {
                table,
                used,
                stated,
            } => {
                write!(
                    f,
                    "table {table:#x} of level {stated} is used at level {used}"
                )
            }
            Self::TableEntry { entry, va } => {
                write!(
                    f,
                    "entry {entry:#x} for {va:#x} is of no known type and is left out"
                )
            }
            Self::RootMismatch { tables, history } => {
                write!(
                    f,
                    "the root table is {tables:#x}, the driver gave the GPU {history:#x}"
                )
            }
            Self::BogusLastRegion { start, end } => {
                write!(f, "the last region ({start:#x} to {end:#x}) is left out")
            }
            Self::BogusRegion { index, start, end } => {
                write!(f, "region {index} ({start:#x} to {end:#x}) is left out")
            }
            Self::CountExceedsFile {
                start,
                stated,
                found,
            } => {
                write!(
                    f,
                    "the region at {start:#x} says it has {stated} pages, the file holds {found}"
                )
            }
            Self::CountExceedsRegion {
                start,
                stated,
                room,
            } => {
                write!(
                    f,
                    "the region at {start:#x} says it has {stated} pages, there is room for {room}"
                )
            }
            Self::StaleTail { bytes } => {
                write!(f, "{bytes} bytes after the last region are left out")
            }
            Self::PageOutside { va, start } => {
                write!(
                    f,
                    "page {va:#x} lies outside of its region at {start:#x} and is left out"
                )
            }
            Self::PageTwice { va } => {
                write!(
                    f,
                    "page {va:#x} is dumped twice with different bytes; the last one counts"
                )
            }
            Self::PhysicalMismatch { pages, va } => {
                write!(
                    f,
                    "{pages} pages from {va:#x} on lie elsewhere than the page tables say"
                )
            }
            Self::RegionsOverlap {
                first,
                second,
                pages,
            } => {
                write!(
                    f,
                    "the regions at {first:#x} and {second:#x} share {pages} pages: they were alive at different times; both are mapped"
                )
            }
            Self::RegionNotMapped { start, pages, of } => {
                write!(
                    f,
                    "{pages} of {of} pages of the region at {start:#x} are not in the page tables: it was freed before they were dumped; it is mapped all the same"
                )
            }
            Self::LeafWithoutRegion { pages, va } => {
                write!(
                    f,
                    "{pages} pages from {va:#x} on belong to no region; they are mapped all the same"
                )
            }
            Self::RangesExceedFile { stated, found } => {
                write!(f, "the file says it has {stated} ranges, it has {found}")
            }
            Self::RangesTail { bytes } => {
                write!(f, "{bytes} bytes after the last range are left out")
            }
            Self::RangeShape {
                index,
                start,
                end,
                size,
            } => {
                write!(
                    f,
                    "range {index} ({start:#x} to {end:#x}, size {size:#x}) is left out"
                )
            }
            Self::RangeNotMapped { index, start } => {
                write!(
                    f,
                    "range {index} at {start:#x} is not mapped and is left out"
                )
            }
            Self::JobNotCaptured { submission, va } => {
                write!(
                    f,
                    "the descriptor at {va:#x} of submission {submission} is not in the dump"
                )
            }
            Self::JobType {
                submission,
                va,
                kind,
            } => {
                write!(
                    f,
                    "the job at {va:#x} of submission {submission} is of type {kind}, which cannot be replayed"
                )
            }
            Self::ChainEndless { submission, va } => {
                write!(
                    f,
                    "the chain of submission {submission} does not end (at {va:#x})"
                )
            }
            Self::JobStatus {
                submission,
                va,
                status,
            } => {
                write!(
                    f,
                    "the job at {va:#x} of submission {submission} has status {status:#x}, not DONE, in the dump"
                )
            }
            Self::More { count, .. } => write!(f, "{count} more of these, which are not listed"),
        }
    }
}
