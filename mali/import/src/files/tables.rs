// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gr_pgt`: the GPU's page tables (AArch64, 4 KiB pages).
//!
//! Header: u64 size of the file, TRANSTAB, MEMATTR, TRANSCFG. Then each table: u64 physical address with the level
//! (0 to 3) in its low bits, and 512 entries. Then the end mark `0xff_ffff_ffff`.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use mali_facts::page_table::{
    ENTRY_BYTES, Entry as TableEntry, EntryType, Format, PAGE_BYTES, shift,
};

use super::{Cursor, PAGE, word64};
use crate::diagnosis::MAX_DIAGNOSED;
use crate::{Diagnosis, ReadError};

const END_MARK: u64 = 0xff_ffff_ffff;
const TABLE_BYTES: usize = PAGE_BYTES as usize;
/// 4 GiB, a recording's limit.
const MAX_PAGES: usize = 1 << 20;
/// Mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// On the recording's machine.
    pub physical: u64,
    /// The GPU may write.
    pub write: bool,
    /// The GPU may execute.
    pub execute: bool,
}

/// Page tables.
#[derive(Clone, Debug, Default)]
pub struct PageTables {
    /// Physical address.
    pub root: u64,
    /// MEMATTR.
    pub attributes: u64,
    /// TRANSCFG.
    pub configuration: u64,
    /// By GPU address.
    pub leaves: BTreeMap<u64, Leaf>,
}

struct Table<'a> {
    level: u32,
    entries: &'a [u8],
}

struct Walk<'a, 'd> {
    tables: HashMap<u64, Table<'a>>,
    /// To stop at a loop.
    path: HashSet<u64>,
    leaves: BTreeMap<u64, Leaf>,
    steps: usize,
    defects: usize,
    diagnoses: &'d mut Vec<Diagnosis>,
}

impl PageTables {
    pub(crate) fn parse(
        bytes: &[u8],
        diagnoses: &mut Vec<Diagnosis>,
    ) -> Result<PageTables, ReadError> {
        let unusable = |reason: String| ReadError::Unusable {
            file: "gr_pgt",
            reason,
        };
        let mut cursor = Cursor::new(bytes);
        let header: Option<[u64; 4]> =
            (|| Some([cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?]))();
        let [size, root, attributes, configuration] =
            header.ok_or_else(|| unusable(format!("{} bytes are no header", bytes.len())))?;
        if size != bytes.len() as u64 {
            diagnoses.push(Diagnosis::TablesSize {
                stated: size,
                found: bytes.len() as u64,
            });
        }
        let mut tables = HashMap::new();
        loop {
            let left = cursor.left();
            match cursor.u64() {
                Some(END_MARK) => break,
                Some(head) if cursor.left() >= TABLE_BYTES => {
                    let entries = cursor.take(TABLE_BYTES).unwrap_or(&[]);
                    let address = head & TableEntry::ADDRESS;
                    let level = (head & (PAGE - 1)) as u32;
                    match tables.entry(address) {
                        Entry::Occupied(_) => {
                            diagnoses.push(Diagnosis::TableTwice { table: address });
                        }
                        Entry::Vacant(free) => {
                            free.insert(Table { level, entries });
                        }
                    }
                }
                _ => {
                    diagnoses.push(Diagnosis::TablesEnd { left });
                    let _ = cursor.take(cursor.left());
                    break;
                }
            }
        }
        if cursor.left() != 0 {
            diagnoses.push(Diagnosis::TablesTail {
                bytes: cursor.left(),
            });
        }
        let root = root & TableEntry::ADDRESS;
        if !tables.contains_key(&root) {
            return Err(unusable(format!(
                "the root table {root:#x} is not in the file"
            )));
        }
        let mut walk = Walk {
            tables,
            path: HashSet::new(),
            leaves: BTreeMap::new(),
            steps: 0,
            defects: 0,
            diagnoses,
        };
        walk.table(root, 0, 0)
            .ok_or_else(|| unusable("the tables map more than 4 GiB, or each other".into()))?;
        Ok(PageTables {
            root,
            attributes,
            configuration,
            leaves: walk.leaves,
        })
    }
}

impl Walk<'_, '_> {
    fn diagnose(&mut self, diagnosis: Diagnosis) {
        self.defects += 1;
        if self.defects <= MAX_DIAGNOSED {
            self.diagnoses.push(diagnosis);
        }
    }

    fn table(&mut self, address: u64, level: u32, base: u64) -> Option<()> {
        let Some(table) = self.tables.get(&address) else {
            self.diagnose(Diagnosis::TableMissing {
                table: address,
                va: base,
            });
            return Some(());
        };
        let (stated, entries) = (table.level, table.entries);
        if stated != level {
            self.diagnose(Diagnosis::TableLevel {
                table: address,
                used: level,
                stated,
            });
            return Some(());
        }
        if !self.path.insert(address) {
            return None;
        }
        for (index, entry) in (0u64..).zip(entries.chunks_exact(ENTRY_BYTES as usize)) {
            let entry = TableEntry(word64(entry));
            let va = base | index << shift(level);
            match entry.entry_type(Format::AArch64, level) {
                // The driver marks unused entries with type 2.
                EntryType::Unmapped => {}
                EntryType::Table => self.table(entry.address(), level + 1, va)?,
                EntryType::Leaf => self.map(va, entry, (1 << shift(level)) / PAGE)?,
                EntryType::Reserved => {
                    self.diagnose(Diagnosis::TableEntry { entry: entry.0, va });
                }
            }
        }
        self.steps += entries.len() / ENTRY_BYTES as usize;
        self.path.remove(&address);
        (self.steps <= 8 * MAX_PAGES).then_some(())
    }

    fn map(&mut self, va: u64, entry: TableEntry, pages: u64) -> Option<()> {
        if self.leaves.len() + pages as usize > MAX_PAGES {
            return None;
        }
        let physical = entry.address() & !(pages * PAGE - 1);
        let permissions = entry.permissions(Format::AArch64);
        for page in 0..pages {
            let leaf = Leaf {
                physical: physical + page * PAGE,
                write: permissions.write,
                execute: permissions.execute,
            };
            self.leaves.insert(va + page * PAGE, leaf);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tables: &[(u64, Vec<(usize, u64)>)], end: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for word in [0u64, tables[0].0 & TableEntry::ADDRESS, 0, 6] {
            out.extend(word.to_le_bytes());
        }
        for (head, entries) in tables {
            out.extend(head.to_le_bytes());
            let mut table = [2u64; 512];
            for &(i, e) in entries {
                table[i] = e;
            }
            out.extend(table.iter().flat_map(|e| e.to_le_bytes()));
        }
        if end {
            out.extend(END_MARK.to_le_bytes());
        }
        let size = out.len() as u64;
        out[..8].copy_from_slice(&size.to_le_bytes());
        out
    }

    fn small() -> Vec<(u64, Vec<(usize, u64)>)> {
        vec![
            (0x1000, vec![(0, 0x2003)]),
            (0x2001, vec![(1, 0x3003)]),
            (0x3002, vec![(2, 0x4003), (3, 0x20_0000 | 0xc1)]),
            (0x4003, vec![(4, 0x40_0000_0000_5743 | 0x10_0000)]),
        ]
    }

    #[test]
    fn tables_map_as_much_as_a_recording_may_have() {
        // Blocks of 1 GiB.
        let mapped = |blocks: usize, pages: usize| {
            let mut first: Vec<_> = (0..blocks).map(|entry| (entry, 0xc1)).collect();
            first.push((blocks, 0x3003));
            let tables = [
                (0x1000, vec![(0, 0x2003)]),
                (0x2001, first),
                (0x3002, vec![(0, 0x4003)]),
                (0x4003, (0..pages).map(|entry| (entry, 0x10_00c3)).collect()),
            ];
            PageTables::parse(&file(&tables, true), &mut Vec::new())
        };
        assert_eq!(mapped(4, 0).unwrap().leaves.len(), 1 << 20);
        let error = mapped(4, 1).unwrap_err().to_string();
        assert!(error.contains("more than 4 GiB"), "{error}");
        assert!(mapped(3, 512).is_ok());
    }

    #[test]
    fn as_many_tables_are_walked_as_may_be() {
        // A table whose entries all name another: it is walked for each.
        let walked = |first: usize, second: usize| {
            let tables = [
                (0x1000, (0..first).map(|entry| (entry, 0x2003)).collect()),
                (0x2001, (0..second).map(|entry| (entry, 0x3003)).collect()),
                (0x3002, Vec::new()),
            ];
            let parsed = PageTables::parse(&file(&tables, true), &mut Vec::new());
            let count = 1 + first + first * second;
            (count, parsed.map(drop).map_err(|error| error.to_string()))
        };
        assert_eq!(walked(127, 128), (1 << 14, Ok(())));
        let (count, error) = walked(128, 127);
        assert_eq!(count, (1 << 14) + 1);
        assert!(error.unwrap_err().contains("or each other"));
    }

    #[test]
    fn pages_and_blocks() {
        let mut d = Vec::new();
        let t = PageTables::parse(&file(&small(), true), &mut d).unwrap();
        assert_eq!(d, []);
        assert_eq!(t.leaves.len(), 513);
        let page = t.leaves[&(1 << 30 | 2 << 21 | 4 << 12)];
        assert_eq!(
            page,
            Leaf {
                physical: 0x10_5000,
                write: true,
                execute: false
            }
        );
        let block = t.leaves[&(1 << 30 | 3 << 21 | 511 << 12)];
        assert_eq!(
            (block.physical, block.write, block.execute),
            (0x3f_f000, false, true)
        );
    }

    #[test]
    fn defects_are_named() {
        let mut d = Vec::new();
        let mut t = small();
        t[2].1.push((5, 0x9003));
        t[3].1.push((5, 1));
        t.push((0x4003, vec![]));
        let mut bytes = file(&t, true);
        bytes.extend([1, 2, 3]);
        PageTables::parse(&bytes, &mut d).unwrap();
        let names: Vec<_> = d.iter().map(Diagnosis::name).collect();
        assert_eq!(
            names,
            [
                "tables-size",
                "table-twice",
                "tables-tail",
                "table-entry",
                "table-missing"
            ]
        );
        d.clear();
        let mut bytes = file(&small(), false);
        bytes.extend([1; 20]);
        PageTables::parse(&bytes, &mut d).unwrap();
        assert!(d.contains(&Diagnosis::TablesEnd { left: 20 }));
    }

    #[test]
    fn loops_and_missing_roots_are_refused() {
        let mut d = Vec::new();
        let looped = vec![(0x1000, vec![(0, 0x1003)])];
        // The level does not match: diagnosed, not followed.
        let t = PageTables::parse(&file(&looped, true), &mut d).unwrap();
        assert!(t.leaves.is_empty());
        assert_eq!(d[0].name(), "table-level");
        assert!(PageTables::parse(&[0; 31], &mut d).is_err());
        let mut bytes = file(&small(), true);
        bytes[9] = 0x77;
        assert!(PageTables::parse(&bytes, &mut d).is_err());
        let all = |e: u64| (0..512).map(|i| (i, e)).collect::<Vec<_>>();
        let huge = vec![(0x1000, all(0x2003)), (0x2001, all(0xc1))];
        assert!(PageTables::parse(&file(&huge, true), &mut d).is_err());
    }
}
