// SPDX-License-Identifier: MIT OR Apache-2.0
//! One job slot.

use core::fmt;

use bitflags::bitflags;

use crate::registers::register::{commands, registers};

registers! {
    HEAD_LO = 0x00, Read, Status, 0, "First job of the chain that runs, low word.";
    HEAD_HI = 0x04, Read, Status, 0, "First job of the chain that runs, high word.";
    TAIL_LO = 0x08, Read, Status, 0, "Job that runs or ran last, low word.";
    TAIL_HI = 0x0C, Read, Status, 0, "Job that runs or ran last, high word.";
    AFFINITY_LO = 0x10, Read, Status, 0, "Shader cores of the chain that runs, low word.";
    AFFINITY_HI = 0x14, Read, Status, 0, "Shader cores of the chain that runs, high word.";
    CONFIG = 0x18, Read, Status, 0, "Configuration of the chain that runs.";
    XAFFINITY = 0x1C, Read, Status, 0, "Extended affinity of the chain that runs.";
    COMMAND = 0x20, ReadWrite, JobSlot, 0, "Command to the chain that runs; see [`JobCommand`].";
    STATUS = 0x24, Read, Status, 0, "How the chain is doing or ended; see [`JobStatus`].";
    HEAD_NEXT_LO = 0x40, ReadWrite, JobSlot, 0, "First job of the next chain, low word.";
    HEAD_NEXT_HI = 0x44, ReadWrite, JobSlot, 0, "First job of the next chain, high word.";
    AFFINITY_NEXT_LO = 0x50, ReadWrite, JobSlot, 0, "Shader cores for the next chain, low word.";
    AFFINITY_NEXT_HI = 0x54, ReadWrite, JobSlot, 0, "Shader cores for the next chain, high word.";
    CONFIG_NEXT = 0x58, ReadWrite, JobSlot, 0, "Configuration of the next chain; see [`JobConfig`].";
    XAFFINITY_NEXT = 0x5C, ReadWrite, JobSlot, 0, "Extended affinity for the next chain.";
    COMMAND_NEXT = 0x60, ReadWrite, Doorbell, 0, "START queues the next chain; 0 when the slot has taken it.";
    FLUSH_ID_NEXT = 0x70, ReadWrite, JobSlot, 0, "LATEST_FLUSH_ID when the chain's memory was last written.";
}

/// In bytes.
pub const STRIDE: u32 = 0x80;

/// In bytes, from the window's start.
pub const fn offset(slot: u32, register: u32) -> u32 {
    0x1800 + STRIDE * slot + register
}

commands! {
    /// Values of COMMAND and COMMAND_NEXT.
    JobCommand {
        /// In COMMAND_NEXT: takes a queued chain back.
        Nop = 0,
        /// Queues the NEXT registers' chain.
        Start = 1,
        /// After the running job; TAIL says where to resume.
        SoftStop = 2,
        /// Abandons the chain.
        HardStop = 3,
        /// If the chain's flag is 0.
        SoftStop0 = 4,
        /// If the chain's flag is 0.
        HardStop0 = 5,
        /// If the chain's flag is 1.
        SoftStop1 = 6,
        /// If the chain's flag is 1.
        HardStop1 = 7,
    }
}

bitflags! {
    /// CONFIG's and CONFIG_NEXT's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct JobConfigFlags: u32 {
        /// Before the first job.
        const START_FLUSH_CLEAN = 1 << 8;
        /// Before the first job (only with clean).
        const START_FLUSH_INVALIDATE = 1 << 9;
        /// Start the address space's MMU.
        const START_MMU = 1 << 10;
        /// For conditional stops of two chains.
        const CHAIN_FLAG = 1 << 11;
        /// After the last job.
        const END_FLUSH_CLEAN = 1 << 12;
        /// After the last job (only with clean).
        const END_FLUSH_INVALIDATE = 1 << 13;
        /// Skip flushes that FLUSH_ID_NEXT shows unnecessary.
        const FLUSH_REDUCTION = 1 << 14;
        /// The GPU writes no status to job headers.
        const DISABLE_WRITE_BACK = 1 << 15;
    }
}

/// CONFIG and CONFIG_NEXT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobConfig(pub u32);

impl JobConfig {
    /// Address space, 0 to 15.
    pub const fn address_space(self) -> u32 {
        self.0 & 0xf
    }

    /// The single-bit options.
    pub const fn flags(self) -> JobConfigFlags {
        JobConfigFlags::from_bits_truncate(self.0)
    }

    /// Thread priority, 0 to 255.
    pub const fn priority(self) -> u32 {
        self.0 >> 16 & 0xff
    }
}

/// STATUS: state, or fault from 0x40.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobStatus(pub u32);

macro_rules! statuses {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        impl JobStatus {
            $(#[doc = $text] pub const $name: Self = Self($code);)*

            /// Name of a known code.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 & 0xff {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// Meaning, in a sentence.
            pub const fn meaning(self) -> Option<&'static str> {
                match self.0 & 0xff {
                    $($code => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    IDLE = 0x00, "Nothing has run since reset.";
    DONE = 0x01, "The chain completed.";
    INTERRUPTED = 0x02, "The chain was interrupted.";
    STOPPED = 0x03, "The chain was soft-stopped and can resume at TAIL.";
    TERMINATED = 0x04, "The chain was hard-stopped.";
    KABOOM = 0x05, "The job was abandoned.";
    EUREKA = 0x06, "The job ended early on purpose.";
    ACTIVE = 0x08, "The chain is running.";
    JOB_CONFIG_FAULT = 0x40, "A job descriptor is invalid, or its type cannot run on this slot.";
    JOB_POWER_FAULT = 0x41, "A core that the job needs is off.";
    JOB_READ_FAULT = 0x42, "A job descriptor cannot be read.";
    JOB_WRITE_FAULT = 0x43, "A job descriptor cannot be written back.";
    JOB_AFFINITY_FAULT = 0x44, "The affinity contains no core that can run the job.";
    JOB_BUS_FAULT = 0x48, "The bus reported an error for a job descriptor.";
    INSTR_INVALID_PC = 0x50, "The program counter left executable memory.";
    INSTR_INVALID_ENC = 0x51, "An instruction has no meaning.";
    INSTR_TYPE_MISMATCH = 0x52, "An instruction does not suit its operands.";
    INSTR_OPERAND_FAULT = 0x53, "An instruction operand is invalid.";
    INSTR_TLS_FAULT = 0x54, "Thread storage was used but not set up.";
    INSTR_BARRIER_FAULT = 0x55, "A barrier cannot be satisfied.";
    INSTR_ALIGN_FAULT = 0x56, "An access is not aligned.";
    DATA_INVALID_FAULT = 0x58, "A data structure is invalid.";
    TILE_RANGE_FAULT = 0x59, "A tile lies outside the frame.";
    ADDR_RANGE_FAULT = 0x5A, "An address lies outside its range.";
    IMPRECISE_FAULT = 0x5B, "A fault that cannot be attributed.";
    OUT_OF_MEMORY = 0x60, "The tiler heap is used up.";
    OUT_OF_MEMORY_AFBC = 0x61, "The compressed frame buffer's heap is used up.";
    UNKNOWN = 0x7F, "An unknown fault.";
    DELAYED_BUS_FAULT = 0x80, "The bus reported an error after the access.";
    SHAREABILITY_FAULT = 0x88, "The shareability of a page does not suit the access.";
    SYSTEM_SHAREABILITY_FAULT = 0x89, "System shareability of a page does not suit the access.";
    GPU_CACHEABILITY_FAULT = 0x8A, "The cacheability of a page does not suit the access.";
    TRANSLATION_FAULT_0 = 0xC0, "No page-table entry at level 0.";
    TRANSLATION_FAULT_1 = 0xC1, "No page-table entry at level 1.";
    TRANSLATION_FAULT_2 = 0xC2, "No page-table entry at level 2.";
    TRANSLATION_FAULT_3 = 0xC3, "No page-table entry at level 3.";
    TRANSLATION_FAULT_4 = 0xC4, "No page-table entry at level 4.";
    TRANSLATION_FAULT_IDENTITY = 0xC7, "The address is outside the identity mapping.";
    PERMISSION_FAULT_0 = 0xC8, "The page-table entry at level 0 forbids the access.";
    PERMISSION_FAULT_1 = 0xC9, "The page-table entry at level 1 forbids the access.";
    PERMISSION_FAULT_2 = 0xCA, "The page-table entry at level 2 forbids the access.";
    PERMISSION_FAULT_3 = 0xCB, "The page-table entry at level 3 forbids the access.";
    TRANSTAB_BUS_FAULT_0 = 0xD0, "The level 0 page table cannot be read.";
    TRANSTAB_BUS_FAULT_1 = 0xD1, "The level 1 page table cannot be read.";
    TRANSTAB_BUS_FAULT_2 = 0xD2, "The level 2 page table cannot be read.";
    TRANSTAB_BUS_FAULT_3 = 0xD3, "The level 3 page table cannot be read.";
    ACCESS_FLAG_0 = 0xD8, "The access flag is clear at level 0.";
    ACCESS_FLAG_1 = 0xD9, "The access flag is clear at level 1.";
    ACCESS_FLAG_2 = 0xDA, "The access flag is clear at level 2.";
    ACCESS_FLAG_3 = 0xDB, "The access flag is clear at level 3.";
    ADDR_SIZE_FAULT_IN_0 = 0xE0, "The virtual address has too many bits (level 0).";
    ADDR_SIZE_FAULT_IN_1 = 0xE1, "The virtual address has too many bits (level 1).";
    ADDR_SIZE_FAULT_IN_2 = 0xE2, "The virtual address has too many bits (level 2).";
    ADDR_SIZE_FAULT_IN_3 = 0xE3, "The virtual address has too many bits (level 3).";
    ADDR_SIZE_FAULT_OUT_0 = 0xE4, "The physical address has too many bits (level 0).";
    ADDR_SIZE_FAULT_OUT_1 = 0xE5, "The physical address has too many bits (level 1).";
    ADDR_SIZE_FAULT_OUT_2 = 0xE6, "The physical address has too many bits (level 2).";
    ADDR_SIZE_FAULT_OUT_3 = 0xE7, "The physical address has too many bits (level 3).";
    MEMORY_ATTRIBUTES_FAULT_0 = 0xE8, "The memory attributes are invalid (level 0).";
    MEMORY_ATTRIBUTES_FAULT_1 = 0xE9, "The memory attributes are invalid (level 1).";
    MEMORY_ATTRIBUTES_FAULT_2 = 0xEA, "The memory attributes are invalid (level 2).";
    MEMORY_ATTRIBUTES_FAULT_3 = 0xEB, "The memory attributes are invalid (level 3).";
    MEMORY_ATTRIBUTES_NONCACHEABLE_0 = 0xEC, "The page is not cacheable but must be (level 0).";
    MEMORY_ATTRIBUTES_NONCACHEABLE_1 = 0xED, "The page is not cacheable but must be (level 1).";
    MEMORY_ATTRIBUTES_NONCACHEABLE_2 = 0xEE, "The page is not cacheable but must be (level 2).";
    MEMORY_ATTRIBUTES_NONCACHEABLE_3 = 0xEF, "The page is not cacheable but must be (level 3).";
}

impl JobStatus {
    /// No state or orderly end.
    pub const fn is_fault(self) -> bool {
        self.0 & 0xff >= 0x40
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "status {:#04x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn configuration_of_a_panfrost_job() {
        let config = JobConfig(0x87b01);
        assert_eq!(config.address_space(), 1);
        assert_eq!(config.priority(), 8);
        assert!(
            config
                .flags()
                .contains(JobConfigFlags::START_FLUSH_CLEAN | JobConfigFlags::CHAIN_FLAG)
        );
        assert!(!config.flags().contains(JobConfigFlags::START_MMU));
    }

    #[test]
    fn status_codes_have_names() {
        assert_eq!(JobStatus(0x01).to_string(), "DONE");
        assert_eq!(JobStatus(0xC3).to_string(), "TRANSLATION_FAULT_3");
        assert_eq!(JobStatus(0x3f).to_string(), "status 0x3f");
        assert!(JobStatus(0x51).is_fault() && !JobStatus::TERMINATED.is_fault());
    }
}
