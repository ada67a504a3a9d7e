// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks page tables.

use gpureplay_memory::Bus;
use gpureplay_shader::Access;
use mali_facts::Profile;
use mali_facts::page_table::{
    Entry, EntryType, Format, LEVELS, PAGE_BYTES, Permissions, VIRTUAL_BITS, entry_offset,
    first_level, shift,
};
use mali_facts::registers::{
    JobStatus, LegacyMode, TranslationConfig, TranslationMode, TranslationTable,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Unmapped,
    Identity,
    Tables(Format),
}

/// A space's latched configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    mode: Mode,
    root: u64,
    input_bits: u32,
    output_bits: u32,
    access_flag_faults: bool,
    write_implies_no_execute: bool,
    execute_implies_read: bool,
}

/// Where a leaf entry leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Of the byte, on the bus.
    pub address: u64,
    /// Leaf's bytes: 4 KiB, 2 MiB or 1 GiB.
    pub size: u64,
    /// Allows loads.
    pub readable: bool,
    /// Allows stores.
    pub writable: bool,
    /// Allows instruction fetches.
    pub executable: bool,
}

impl Translation {
    /// Before the first UPDATE; everything faults.
    pub const UNMAPPED: Translation = Translation {
        mode: Mode::Unmapped,
        root: 0,
        input_bits: VIRTUAL_BITS,
        output_bits: 40,
        access_flag_faults: true,
        write_implies_no_execute: false,
        execute_implies_read: false,
    };

    /// By TRANSTAB and TRANSCFG. Reserved modes and 64 KiB pages map nothing.
    pub fn new(table: u64, config: u64, profile: &Profile) -> Translation {
        let (table, register) = (TranslationTable(table), TranslationConfig(config));
        let mode = match register.mode() {
            TranslationMode::Legacy => match table.legacy_mode() {
                LegacyMode::Table => Mode::Tables(Format::Lpae),
                LegacyMode::Identity => Mode::Identity,
                LegacyMode::Unmapped => Mode::Unmapped,
            },
            TranslationMode::Identity => Mode::Identity,
            TranslationMode::AArch64With4K => Mode::Tables(Format::AArch64),
            _ => Mode::Unmapped,
        };
        let input_bits = match mode {
            Mode::Tables(Format::AArch64) => register.input_bits().min(VIRTUAL_BITS),
            // Always four levels; bits above the GPU's range are ignored but must be 0.
            _ => VIRTUAL_BITS,
        };
        Translation {
            mode,
            root: table.root(),
            input_bits,
            output_bits: profile.physical_bits(),
            access_flag_faults: config & TranslationConfig::DISABLE_ACCESS_FLAG_FAULT == 0,
            write_implies_no_execute: config & TranslationConfig::WRITE_IMPLIES_NO_EXECUTE != 0,
            execute_implies_read: config & TranslationConfig::EXECUTE_IMPLIES_READ != 0,
        }
    }

    /// Whether no access can succeed.
    pub fn is_unmapped(&self) -> bool {
        self.mode == Mode::Unmapped
    }

    /// Translates an access.
    ///
    /// # Errors
    ///
    /// The MMU's exception code.
    pub fn translate<B: Bus + ?Sized>(
        &self,
        bus: &B,
        va: u64,
        access: Access,
    ) -> Result<u64, JobStatus> {
        let (mapping, level) = self.walk(bus, va)?;
        let allowed = match access {
            Access::Read => mapping.readable,
            Access::Write => mapping.writable,
            Access::Execute => mapping.executable,
        };
        if allowed {
            Ok(mapping.address)
        } else {
            Err(at(JobStatus::PERMISSION_FAULT_0, level))
        }
    }

    /// Mapping of `va`, for any access.
    ///
    /// # Errors
    ///
    /// The MMU's exception code.
    pub fn mapping<B: Bus + ?Sized>(&self, bus: &B, va: u64) -> Result<Mapping, JobStatus> {
        self.walk(bus, va).map(|(mapping, _)| mapping)
    }

    fn walk<B: Bus + ?Sized>(&self, bus: &B, va: u64) -> Result<(Mapping, u32), JobStatus> {
        let format = match self.mode {
            Mode::Unmapped => return Err(JobStatus::TRANSLATION_FAULT_0),
            Mode::Identity if va >> self.output_bits != 0 => {
                return Err(JobStatus::TRANSLATION_FAULT_IDENTITY);
            }
            Mode::Identity => {
                let all = Mapping {
                    address: va,
                    size: PAGE_BYTES,
                    readable: true,
                    writable: true,
                    executable: true,
                };
                return Ok((all, 0));
            }
            Mode::Tables(format) => format,
        };
        if va >> self.input_bits != 0 {
            return Err(JobStatus::TRANSLATION_FAULT_0);
        }
        let mut table = self.root;
        for level in first_level(self.input_bits)..LEVELS {
            let page = bus
                .page(table)
                .ok_or(at(JobStatus::TRANSTAB_BUS_FAULT_0, level))?;
            let entry = Entry(page.load_u64(entry_offset(va, level) as usize));
            let leaf = match entry.entry_type(format, level) {
                EntryType::Table => false,
                EntryType::Leaf => true,
                EntryType::Unmapped | EntryType::Reserved => {
                    return Err(at(JobStatus::TRANSLATION_FAULT_0, level));
                }
            };
            if entry.address() >> self.output_bits != 0 {
                return Err(at(JobStatus::ADDR_SIZE_FAULT_OUT_0, level));
            }
            if leaf {
                return self.leaf(format, entry, va, level);
            }
            table = entry.address();
        }
        Err(JobStatus::TRANSLATION_FAULT_3)
    }

    fn leaf(
        &self,
        format: Format,
        entry: Entry,
        va: u64,
        level: u32,
    ) -> Result<(Mapping, u32), JobStatus> {
        if format == Format::AArch64
            && self.access_flag_faults
            && entry.0 & Entry::AARCH64_ACCESSED == 0
        {
            return Err(at(JobStatus::ACCESS_FLAG_0, level));
        }
        let Permissions {
            read,
            write,
            execute,
        } = entry.permissions(format);
        let executable = execute && !(self.write_implies_no_execute && write) && (read || write);
        let size = 1 << shift(level);
        let mapping = Mapping {
            address: entry.address() & !(size - 1) | va & (size - 1),
            size,
            readable: read || self.execute_implies_read && executable,
            writable: write,
            executable,
        };
        Ok((mapping, level))
    }
}

fn at(family: JobStatus, level: u32) -> JobStatus {
    JobStatus(family.0 + level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_memory::Ram;
    use mali_facts::registers::TranslationConfig;

    const LPAE_READ: u64 = Entry::LPAE_READ;
    const LPAE_WRITE: u64 = Entry::LPAE_WRITE;
    const AARCH64_USER: u64 = Entry::AARCH64_USER;
    const AARCH64_READ_ONLY: u64 = Entry::AARCH64_READ_ONLY;
    const AARCH64_ACCESSED: u64 = Entry::AARCH64_ACCESSED;
    const EXECUTE_NEVER: u64 = Entry::EXECUTE_NEVER;
    const LPAE: u64 = 0;
    const V8: u64 = TranslationConfig::aarch64_4k().0;

    struct Tables {
        ram: Ram,
        root: u64,
    }

    impl Tables {
        fn new() -> Tables {
            let ram = Ram::new(64).unwrap();
            let root = ram.allocate().unwrap();
            Tables { ram, root }
        }

        fn set(&self, va: u64, level: u32, entry: u64) {
            let mut table = self.root;
            for above in 0..level {
                let offset = (va >> (39 - 9 * above) & 511) as usize * 8;
                let page = self.ram.page(table).unwrap();
                if page.load_u64(offset) == 0 {
                    page.store_u64(offset, self.ram.allocate().unwrap() | 3);
                }
                table = page.load_u64(offset) & Entry::ADDRESS;
            }
            self.ram
                .page(table)
                .unwrap()
                .store_u64((va >> (39 - 9 * level) & 511) as usize * 8, entry);
        }

        fn translation(&self, config: u64) -> Translation {
            let low = if config == LPAE { 3 } else { 0 };
            Translation::new(self.root | low, config, Profile::by_name("g52").unwrap())
        }

        fn translate(&self, config: u64, va: u64, access: Access) -> Result<u64, JobStatus> {
            self.translation(config).translate(&self.ram, va, access)
        }
    }

    const LPAE_ALL: u64 = 1 | LPAE_READ | LPAE_WRITE;
    const V8_PAGE: u64 = 3 | AARCH64_USER | AARCH64_ACCESSED;
    const V8_BLOCK: u64 = 1 | AARCH64_USER | AARCH64_ACCESSED;

    #[test]
    fn every_leaf_size_maps() {
        for (config, level, entry, va, expected) in [
            (
                LPAE,
                3,
                0x1_2345_6000 | LPAE_ALL,
                0x0230_1abc,
                0x1_2345_6abc,
            ),
            (
                LPAE,
                2,
                0x1_2340_0000 | LPAE_ALL,
                0x0231_2abc,
                0x1_2351_2abc,
            ),
            (
                LPAE,
                1,
                0x1_4000_0000 | LPAE_ALL,
                0x4231_2abc,
                0x1_4231_2abc,
            ),
            (
                V8,
                3,
                0x1_2345_6000 | V8_PAGE,
                0xffff_8000_1abc,
                0x1_2345_6abc,
            ),
            (
                V8,
                2,
                0x1_2340_0000 | V8_BLOCK,
                0xffff_8011_2abc,
                0x1_2351_2abc,
            ),
            (
                V8,
                1,
                0x1_4000_0000 | V8_BLOCK,
                0xffff_c231_2abc,
                0x1_4231_2abc,
            ),
        ] {
            let tables = Tables::new();
            tables.set(va, level, entry);
            for access in [Access::Read, Access::Write, Access::Execute] {
                assert_eq!(
                    tables.translate(config, va, access),
                    Ok(expected),
                    "{config:#x} {level}"
                );
            }
            let mapping = tables.translation(config).mapping(&tables.ram, va).unwrap();
            assert_eq!(mapping.size, 1 << (39 - 9 * level));
        }
    }

    #[test]
    fn missing_and_malformed_entries_fault_at_their_level() {
        for (config, level, entry) in [
            (LPAE, 0, 0),
            (LPAE, 1, 0),
            (LPAE, 2, 0),
            (LPAE, 3, 0),
            (LPAE, 0, LPAE_ALL),
            (LPAE, 3, 3 | LPAE_READ),
            (LPAE, 2, 2),
            (V8, 0, 0),
            (V8, 1, 0),
            (V8, 2, 0),
            (V8, 3, 0),
            (V8, 0, V8_BLOCK),
            (V8, 3, V8_BLOCK),
            (V8, 3, 2),
        ] {
            let tables = Tables::new();
            tables.set(0x0230_1000, level, entry);
            let expected = JobStatus(JobStatus::TRANSLATION_FAULT_0.0 + level);
            assert_eq!(
                tables.translate(config, 0x0230_1000, Access::Read),
                Err(expected),
                "{config:#x} {entry:#x}"
            );
        }
    }

    #[test]
    fn permissions_are_checked_by_access() {
        use Access::{Execute, Read, Write};
        for (config, level, entry, denied) in [
            (LPAE, 3, 1 | LPAE_READ, &[Write][..]),
            (LPAE, 3, 1 | LPAE_WRITE, &[Read]),
            (LPAE, 2, LPAE_ALL | EXECUTE_NEVER, &[Execute]),
            (LPAE, 3, 1, &[Read, Write, Execute]),
            (V8, 3, V8_PAGE | AARCH64_READ_ONLY, &[Write]),
            (V8, 2, V8_BLOCK | EXECUTE_NEVER, &[Execute]),
            (V8, 3, 3 | AARCH64_ACCESSED, &[Read, Write, Execute]),
            (
                V8 | TranslationConfig::WRITE_IMPLIES_NO_EXECUTE,
                3,
                V8_PAGE,
                &[Execute],
            ),
        ] {
            let tables = Tables::new();
            tables.set(0x0230_1000, level, entry | 0x2000_0000);
            for access in [Read, Write, Execute] {
                let expected = if denied.contains(&access) {
                    Err(JobStatus(JobStatus::PERMISSION_FAULT_0.0 + level))
                } else {
                    Ok(0x2000_0000 + if level == 2 { 0x10_1000 } else { 0 })
                };
                assert_eq!(
                    tables.translate(config, 0x0230_1000, access),
                    expected,
                    "{entry:#x} {access}"
                );
            }
        }
    }

    #[test]
    fn access_flag_faults_unless_disabled() {
        let tables = Tables::new();
        tables.set(0x1000, 3, 0x2000_0000 | 3 | AARCH64_USER);
        assert_eq!(
            tables.translate(V8, 0x1000, Access::Read),
            Err(JobStatus::ACCESS_FLAG_3)
        );
        let relaxed = V8 | TranslationConfig::DISABLE_ACCESS_FLAG_FAULT;
        assert_eq!(
            tables.translate(relaxed, 0x1000, Access::Read),
            Ok(0x2000_0000)
        );
    }

    #[test]
    fn tables_and_pages_outside_of_memory() {
        let tables = Tables::new();
        tables.set(0x1000, 2, 0x7000_0000 | 3);
        assert_eq!(
            tables.translate(LPAE, 0x1000, Access::Read),
            Err(JobStatus::TRANSTAB_BUS_FAULT_3)
        );
        tables.set(0x4000_0000, 1, 1 << 41 | LPAE_ALL);
        assert_eq!(
            tables.translate(LPAE, 0x4000_0000, Access::Read),
            Err(JobStatus::ADDR_SIZE_FAULT_OUT_1)
        );
        assert_eq!(
            tables.translate(LPAE, 1 << 48, Access::Read),
            Err(JobStatus::TRANSLATION_FAULT_0)
        );
    }

    #[test]
    fn short_tables_start_at_a_lower_level() {
        let tables = Tables::new();
        let root = tables.ram.page(tables.root).unwrap();
        root.store_u64(8, 0x4000_0000 | V8_BLOCK);
        let config = 6 | (55 - 33) << 6;
        assert_eq!(
            tables.translate(config, 0x4000_1234, Access::Read),
            Ok(0x4000_1234)
        );
        assert_eq!(
            tables.translate(config, 1 << 33, Access::Read),
            Err(JobStatus::TRANSLATION_FAULT_0)
        );
    }

    #[test]
    fn modes_without_tables() {
        let profile = Profile::by_name("g52").unwrap();
        let ram = Ram::new(1).unwrap();
        for (table, config, expected) in [
            (0, 0, Err(JobStatus::TRANSLATION_FAULT_0)),
            (2, 0, Ok(0x1234)),
            (0, 1, Err(JobStatus::TRANSLATION_FAULT_0)),
            (0, 2, Ok(0x1234)),
            (0, 8, Err(JobStatus::TRANSLATION_FAULT_0)),
        ] {
            let translation = Translation::new(table, config, profile);
            assert_eq!(translation.translate(&ram, 0x1234, Access::Write), expected);
        }
        let identity = Translation::new(2, 0, profile);
        assert_eq!(
            identity.translate(&ram, 1 << 40, Access::Read),
            Err(JobStatus::TRANSLATION_FAULT_IDENTITY)
        );
        assert!(Translation::new(0, 0, profile).is_unmapped() && !identity.is_unmapped());
    }
}
