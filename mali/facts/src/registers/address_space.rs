// SPDX-License-Identifier: MIT OR Apache-2.0
//! One address space of the MMU.

use core::fmt;

use crate::registers::JobStatus;
use crate::registers::register::{commands, registers};

registers! {
    TRANSTAB_LO = 0x00, ReadWrite, AddressSpace, 0, "Physical address of the page table and mode bits, low word.";
    TRANSTAB_HI = 0x04, ReadWrite, AddressSpace, 0, "Physical address of the page table, high word.";
    MEMATTR_LO = 0x08, ReadWrite, AddressSpace, 0, "Memory attributes 0 to 3, a byte each.";
    MEMATTR_HI = 0x0C, ReadWrite, AddressSpace, 0, "Memory attributes 4 to 7, a byte each.";
    LOCKADDR_LO = 0x10, ReadWrite, AddressSpace, 0, "Region for LOCK and the flushes: address, and log2 of its size in bits 5:0.";
    LOCKADDR_HI = 0x14, ReadWrite, AddressSpace, 0, "Region for LOCK and the flushes, high word.";
    COMMAND = 0x18, Write, AddressSpace, 0, "Starts a command; see [`AddressSpaceCommand`].";
    FAULTSTATUS = 0x1C, Read, Fault, 0, "What the last fault was; see [`FaultStatus`].";
    FAULTADDRESS_LO = 0x20, Read, Fault, 0, "Virtual address of the last fault, low word.";
    FAULTADDRESS_HI = 0x24, Read, Fault, 0, "Virtual address of the last fault, high word.";
    STATUS = 0x28, Read, Status, 0, "Bit 0: a command is in progress.";
    TRANSCFG_LO = 0x30, ReadWrite, AddressSpace, 0, "Translation mode, low word; see [`TranslationConfig`].";
    TRANSCFG_HI = 0x34, ReadWrite, AddressSpace, 0, "Translation mode, high word.";
    FAULTEXTRA_LO = 0x38, Read, Fault, 0, "More about the last fault, low word.";
    FAULTEXTRA_HI = 0x3C, Read, Fault, 0, "More about the last fault, high word.";
}

/// In bytes.
pub const STRIDE: u32 = 0x40;

/// In bytes, from the window's start.
pub const fn offset(space: u32, register: u32) -> u32 {
    0x2400 + STRIDE * space + register
}

commands! {
    /// Values of COMMAND.
    AddressSpaceCommand {
        /// Nothing.
        Nop = 0,
        /// Uses TRANSTAB, MEMATTR and TRANSCFG.
        Update = 1,
        /// Holds LOCKADDR's region back.
        Lock = 2,
        /// Releases the locked region.
        Unlock = 3,
        /// Drops translations (and cleans caches).
        FlushPageTables = 4,
        /// Drops translations, after the region's accesses.
        FlushMemory = 5,
    }
}

/// Translation by TRANSCFG's legacy (Mali LPAE) format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyMode {
    /// Every access faults.
    Unmapped,
    /// Virtual is physical.
    Identity,
    /// Four levels of tables.
    Table,
}

/// The TRANSTAB register pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationTable(pub u64);

impl TranslationTable {
    /// Bit 2, legacy: inner cache.
    pub const READ_INNER: u64 = 1 << 2;
    /// Bit 4, legacy: outer shareable.
    pub const SHARE_OUTER: u64 = 1 << 4;

    /// Value for legacy mode; `root`: physical, 4 KiB aligned.
    pub const fn legacy(root: u64, coherent: bool) -> Self {
        let share = if coherent { Self::SHARE_OUTER } else { 0 };
        Self(root & !0xfff | 3 | Self::READ_INNER | share)
    }

    /// Mode bits of the legacy format.
    pub const fn legacy_mode(self) -> LegacyMode {
        match self.0 & 3 {
            3 => LegacyMode::Table,
            2 => LegacyMode::Identity,
            _ => LegacyMode::Unmapped,
        }
    }

    /// Root table's physical address.
    pub const fn root(self) -> u64 {
        self.0 & 0x0000_ffff_ffff_f000
    }
}

/// Format that TRANSCFG selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationMode {
    /// Mali LPAE; TRANSTAB's low bits configure.
    Legacy,
    /// Every access faults.
    Unmapped,
    /// Virtual is physical.
    Identity,
    /// ARMv8 stage 1, 4 KiB.
    AArch64With4K,
    /// ARMv8 stage 1, 64 KiB.
    AArch64With64K,
    /// Reserved value.
    Reserved(u8),
}

/// The TRANSCFG register pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationConfig(pub u64);

impl TranslationConfig {
    /// Bit 34: clear flags do not fault.
    pub const DISABLE_ACCESS_FLAG_FAULT: u64 = 1 << 34;
    /// Bit 33: ignores tables' permissions.
    pub const DISABLE_HIERARCHICAL_PERMISSIONS: u64 = 1 << 33;
    /// Bit 35.
    pub const WRITE_IMPLIES_NO_EXECUTE: u64 = 1 << 35;
    /// Bit 36.
    pub const EXECUTE_IMPLIES_READ: u64 = 1 << 36;

    /// Format of page tables.
    pub const fn mode(self) -> TranslationMode {
        match self.0 & 0xf {
            0 => TranslationMode::Legacy,
            1 => TranslationMode::Unmapped,
            2 => TranslationMode::Identity,
            6 => TranslationMode::AArch64With4K,
            8 => TranslationMode::AArch64With64K,
            other => TranslationMode::Reserved(other as u8),
        }
    }

    /// 55 minus INA_BITS, or 48 for 0.
    pub const fn input_bits(self) -> u32 {
        match (self.0 >> 6 & 0x1f) as u32 {
            0 => 48,
            field => 55 - field,
        }
    }

    /// For ARMv8 tables of 4 KiB pages, with write-back walks and read allocation, as Arm's driver.
    pub const fn aarch64_4k() -> Self {
        Self(0x4200_0006)
    }
}

/// What a faulting access wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAccess {
    /// Atomic operation.
    Atomic = 0,
    /// Instruction fetch.
    Execute = 1,
    /// Load.
    Read = 2,
    /// Store.
    Write = 3,
}

/// The FAULTSTATUS register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultStatus(pub u32);

impl FaultStatus {
    /// Codes from 0x80 in [`JobStatus`].
    pub const fn new(code: JobStatus, access: FaultAccess, source: u16) -> Self {
        Self(code.0 & 0xff | (access as u32) << 8 | (source as u32) << 16)
    }

    /// Named as job status codes.
    pub const fn code(self) -> JobStatus {
        JobStatus(self.0 & 0xff)
    }

    /// The wanted access.
    pub const fn access(self) -> FaultAccess {
        match self.0 >> 8 & 3 {
            0 => FaultAccess::Atomic,
            1 => FaultAccess::Execute,
            2 => FaultAccess::Read,
            _ => FaultAccess::Write,
        }
    }

    /// GPU unit that made the access.
    pub const fn source(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

impl fmt::Display for FaultStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.access() {
            FaultAccess::Atomic => "atomic",
            FaultAccess::Execute => "execute",
            FaultAccess::Read => "read",
            FaultAccess::Write => "write",
        };
        write!(f, "{} on {access}", self.code())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn fault_status_round_trip() {
        let status = FaultStatus::new(JobStatus::PERMISSION_FAULT_3, FaultAccess::Write, 0x1234);
        assert_eq!(status.0, 0x1234_03cb);
        assert_eq!(status.to_string(), "PERMISSION_FAULT_3 on write");
        assert_eq!(
            (status.access(), status.source()),
            (FaultAccess::Write, 0x1234)
        );
    }

    #[test]
    fn translation_modes() {
        assert_eq!(
            TranslationConfig::aarch64_4k().mode(),
            TranslationMode::AArch64With4K
        );
        assert_eq!(TranslationConfig::aarch64_4k().input_bits(), 48);
        assert_eq!(TranslationConfig(6 | (55 - 40) << 6).input_bits(), 40);
        assert_eq!(TranslationTable::legacy(0x4321_0000, false).0, 0x4321_0007);
        assert_eq!(TranslationTable(0x1_2345_6017).root(), 0x1_2345_6000);
        assert_eq!(TranslationTable(0).legacy_mode(), LegacyMode::Unmapped);
    }
}
