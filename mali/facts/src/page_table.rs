// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables in Bifrost drivers' two formats.
//!
//! Level 0 is the root. Mali LPAE is the legacy mode (panfrost), AArch64 ARMv8 stage 1 (Arm's driver).

/// Levels of tables.
pub const LEVELS: u32 = 4;
/// Per table.
pub const ENTRIES: usize = 512;
/// Per entry.
pub const ENTRY_BYTES: u64 = 8;
/// Of pages and tables.
pub const PAGE_BYTES: u64 = 1 << PAGE_BITS;
/// Translated address bits.
pub const VIRTUAL_BITS: u32 = PAGE_BITS + LEVELS * INDEX_BITS;

const PAGE_BITS: u32 = 12;
const INDEX_BITS: u32 = 9;

/// AS_MEMATTR, Mali LPAE: index 0 and 2 as the implementation likes, 1 write-back with allocation.
pub const LPAE_MEMORY_ATTRIBUTES: u64 = 0x0088_8d88;
/// AS_MEMATTR, AArch64, by Arm's driver: index 0 as the implementation likes.
pub const AARCH64_MEMORY_ATTRIBUTES: u64 = 0x4c8d_888d_8f88;

/// Lowest address bit left to lower levels; entries map `1 << shift(level)` bytes. Levels 0 to 3.
#[inline]
pub const fn shift(level: u32) -> u32 {
    PAGE_BITS + INDEX_BITS * (LEVELS - 1 - level)
}

/// In bytes; levels 0 to 3.
#[inline]
pub const fn entry_offset(va: u64, level: u32) -> u64 {
    (va >> shift(level) & (ENTRIES as u64 - 1)) * ENTRY_BYTES
}

/// Level of the root for 13 to 48 address bits.
#[inline]
pub const fn first_level(bits: u32) -> u32 {
    LEVELS - (bits - PAGE_BITS).div_ceil(INDEX_BITS)
}

/// Format of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Type 1 for pages and blocks, permissions in bits 7:6.
    Lpae,
    /// ARMv8 stage 1: type 3 for pages, 1 for blocks.
    AArch64,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryType {
    /// Of the next level.
    Table,
    /// A page, or a block above the last level.
    Leaf,
    /// Bit 0 clear; drivers write 0 or 2.
    Unmapped,
    /// Reserved at this level.
    Reserved,
}

/// Accesses that a page permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

/// A page table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// Bits 1:0.
    pub const TYPE: u64 = 3;
    /// Bits 47:12: of table, page or block.
    pub const ADDRESS: u64 = 0x0000_ffff_ffff_f000;
    /// Leaf's bits 9:8: coherent with all observers.
    pub const OUTER_SHAREABLE: u64 = 2 << 8;
    /// Leaf's bits 9:8: coherent with processors and GPU.
    pub const INNER_SHAREABLE: u64 = 3 << 8;
    /// Leaf's bit 53: no privileged fetches; Linux, Mali LPAE.
    pub const PRIVILEGED_EXECUTE_NEVER: u64 = 1 << 53;
    /// Leaf's bit 54: no fetches.
    pub const EXECUTE_NEVER: u64 = 1 << 54;
    /// Mali LPAE leaf's bit 6: loads.
    pub const LPAE_READ: u64 = 1 << 6;
    /// Mali LPAE leaf's bit 7: stores.
    pub const LPAE_WRITE: u64 = 1 << 7;
    /// AArch64 leaf's bit 6: unprivileged accesses, as the GPU's.
    pub const AARCH64_USER: u64 = 1 << 6;
    /// AArch64 leaf's bit 7: no stores.
    pub const AARCH64_READ_ONLY: u64 = 1 << 7;
    /// AArch64 leaf's bit 10: access flag.
    pub const AARCH64_ACCESSED: u64 = 1 << 10;

    const TABLE: u64 = 3;
    const BLOCK: u64 = 1;
    const AARCH64_PAGE: u64 = 3;

    /// For a table of the next level.
    #[inline]
    pub const fn table(address: u64) -> Self {
        Self(address & Self::ADDRESS | Self::TABLE)
    }

    /// Entry for a readable page.
    #[inline]
    pub const fn page(format: Format, address: u64, write: bool, execute: bool) -> Self {
        let mut entry = address & Self::ADDRESS;
        match format {
            Format::Lpae => {
                entry |= Self::BLOCK | Self::LPAE_READ | Self::OUTER_SHAREABLE;
                if write {
                    entry |= Self::LPAE_WRITE;
                }
                if !execute {
                    entry |= Self::EXECUTE_NEVER | Self::PRIVILEGED_EXECUTE_NEVER;
                }
            }
            Format::AArch64 => {
                entry |= Self::AARCH64_PAGE
                    | Self::AARCH64_USER
                    | Self::AARCH64_ACCESSED
                    | Self::INNER_SHAREABLE;
                if !write {
                    entry |= Self::AARCH64_READ_ONLY;
                }
                if !execute {
                    entry |= Self::EXECUTE_NEVER;
                }
            }
        }
        Self(entry)
    }

    /// Entry for a readable block of 2 MiB or 1 GiB.
    #[inline]
    pub const fn block(format: Format, address: u64, write: bool, execute: bool) -> Self {
        Self(Self::page(format, address, write, execute).0 & !Self::TYPE | Self::BLOCK)
    }

    /// Address of table, page or block.
    #[inline]
    pub const fn address(self) -> u64 {
        self.0 & Self::ADDRESS
    }

    /// Type of the entry at `level`.
    #[inline]
    pub const fn entry_type(self, format: Format, level: u32) -> EntryType {
        match (self.0 & Self::TYPE, level, format) {
            (0 | 2, _, _) => EntryType::Unmapped,
            (Self::TABLE, 0..=2, _) => EntryType::Table,
            (Self::BLOCK, 1..=2, _)
            | (Self::BLOCK, 3, Format::Lpae)
            | (Self::AARCH64_PAGE, 3, Format::AArch64) => EntryType::Leaf,
            _ => EntryType::Reserved,
        }
    }

    /// Of a leaf; the address space may differ.
    #[inline]
    pub const fn permissions(self, format: Format) -> Permissions {
        let (read, write) = match format {
            Format::Lpae => (
                self.0 & Self::LPAE_READ != 0,
                self.0 & Self::LPAE_WRITE != 0,
            ),
            Format::AArch64 => {
                let user = self.0 & Self::AARCH64_USER != 0;
                (user, user && self.0 & Self::AARCH64_READ_ONLY == 0)
            }
        };
        Permissions {
            read,
            write,
            execute: self.0 & Self::EXECUTE_NEVER == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        assert_eq!([0, 1, 2, 3].map(shift), [39, 30, 21, 12]);
        assert_eq!(VIRTUAL_BITS, 48);
        let va = 1 << 39 | 2 << 30 | 3 << 21 | 4 << 12 | 0xabc;
        assert_eq!(
            [0, 1, 2, 3].map(|level| entry_offset(va, level)),
            [8, 16, 24, 32]
        );
        assert_eq!(entry_offset(u64::MAX, 0), 511 * 8);
        assert_eq!(
            [48, 40, 39, 31, 30, 22, 21, 13].map(first_level),
            [0, 0, 1, 1, 2, 2, 3, 3]
        );
    }

    /// From Linux's `io-pgtable-arm`, and dumps of the original GPUReplay.
    #[test]
    fn entries_of_drivers() {
        for (format, entry, write, execute) in [
            (Format::Lpae, 0x1000_0241, false, true),
            (Format::Lpae, 0x0060_0000_1000_02c1, true, false),
            (Format::AArch64, 0x1000_07c3, false, true),
            (Format::AArch64, 0x0040_0000_1000_0743, true, false),
        ] {
            assert_eq!(Entry::page(format, 0x1000_0000, write, execute).0, entry);
            let permissions = Permissions {
                read: true,
                write,
                execute,
            };
            assert_eq!(Entry(entry).permissions(format), permissions);
            assert_eq!(Entry(entry).entry_type(format, 3), EntryType::Leaf);
            assert_eq!(Entry(entry).address(), 0x1000_0000);
        }
        assert_eq!(Entry::table(0x1000_0fff).0, 0x1000_0003);
    }

    #[test]
    fn types_depend_on_the_level() {
        use EntryType::{Leaf, Reserved, Table, Unmapped};
        for (format, bits, types) in [
            (Format::Lpae, 0, [Unmapped; 4]),
            (Format::Lpae, 1, [Reserved, Leaf, Leaf, Leaf]),
            (Format::Lpae, 2, [Unmapped; 4]),
            (Format::Lpae, 3, [Table, Table, Table, Reserved]),
            (Format::AArch64, 1, [Reserved, Leaf, Leaf, Reserved]),
            (Format::AArch64, 3, [Table, Table, Table, Leaf]),
        ] {
            let found = [0, 1, 2, 3].map(|level| Entry(bits).entry_type(format, level));
            assert_eq!(found, types, "{format:?} {bits}");
        }
    }
}
