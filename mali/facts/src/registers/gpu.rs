// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU control.

use core::fmt;

use bitflags::bitflags;

use crate::registers::register::{commands, registers};

registers! {
    GPU_ID = 0x000, Read, Identity, 0, "Product, version and status of the GPU; see [`GpuId`].";
    L2_FEATURES = 0x004, Read, Identity, 0, "Level-2 cache: log2 of line size, ways, size and bus width, one byte each.";
    CORE_FEATURES = 0x008, Read, Identity, 0, "Shader core variant.";
    TILER_FEATURES = 0x00C, Read, Identity, 0, "Tiler: log2 of bin size in bits 5:0, hierarchy levels in 11:8.";
    MEM_FEATURES = 0x010, Read, Identity, 0, "Memory system: coherent core groups in bit 0, level-2 slices minus 1 in 11:8.";
    MMU_FEATURES = 0x014, Read, Identity, 0, "Virtual address bits in 7:0, physical address bits in 15:8.";
    AS_PRESENT = 0x018, Read, Identity, 0, "Bitmap of address spaces.";
    JS_PRESENT = 0x01C, Read, Identity, 0, "Bitmap of job slots.";
    GPU_INT_RAWSTAT = 0x020, Read, Interrupt, 0, "Pending GPU interrupts; see [`GpuInterrupt`].";
    GPU_INT_CLEAR = 0x024, Write, Interrupt, 0, "Clears the pending GPU interrupts written as 1.";
    GPU_INT_MASK = 0x028, ReadWrite, Interrupt, 0, "GPU interrupts that reach the line.";
    GPU_INT_STAT = 0x02C, Read, Interrupt, 0, "GPU_INT_RAWSTAT and GPU_INT_MASK.";
    GPU_CMD = 0x030, Write, Command, 0, "Starts a command; see [`GpuCommand`].";
    GPU_STATUS = 0x034, Read, Status, 0, "Bit 2 counters being dumped, bit 6 cycle counter runs, bit 7 protected mode.";
    LATEST_FLUSH_ID = 0x038, Read, Nondeterministic, 0, "Number of cache flushes so far; feeds JS_FLUSH_ID_NEXT.";
    GPU_FAULT_STATUS = 0x03C, Read, Fault, 0, "Exception code and access of a GPU fault.";
    GPU_FAULT_ADDRESS_LO = 0x040, Read, Fault, 0, "Physical address of a GPU fault, low word.";
    GPU_FAULT_ADDRESS_HI = 0x044, Read, Fault, 0, "Physical address of a GPU fault, high word.";
    L2_CONFIG = 0x048, ReadWrite, Quirk, 0, "Size and hash of the level-2 cache, where configurable.";
    AFBC_FEATURES = 0x04C, Read, Identity, 0, "Frame buffer compression variants that are missing.";
    PWR_KEY = 0x050, Write, Quirk, 0, "Unlocks PWR_OVERRIDE0/1 when [`PWR_KEY_UNLOCK`] is written.";
    PWR_OVERRIDE0 = 0x054, ReadWrite, Quirk, 0, "Power manager override; some SoCs need it set.";
    PWR_OVERRIDE1 = 0x058, ReadWrite, Quirk, 0, "Power manager override; some SoCs need it set.";
    PRFCNT_BASE_LO = 0x060, ReadWrite, PerformanceCounter, 0, "GPU virtual address of the counter dump, low word.";
    PRFCNT_BASE_HI = 0x064, ReadWrite, PerformanceCounter, 0, "GPU virtual address of the counter dump, high word.";
    PRFCNT_CONFIG = 0x068, ReadWrite, PerformanceCounter, 0, "Mode in 1:0, address space in 7:4, set in 11:8.";
    PRFCNT_JM_EN = 0x06C, ReadWrite, PerformanceCounter, 0, "Job manager counters to dump.";
    PRFCNT_SHADER_EN = 0x070, ReadWrite, PerformanceCounter, 0, "Shader core counters to dump.";
    PRFCNT_TILER_EN = 0x074, ReadWrite, PerformanceCounter, 0, "Tiler counters to dump.";
    PRFCNT_MMU_L2_EN = 0x07C, ReadWrite, PerformanceCounter, 0, "MMU and level-2 cache counters to dump.";
    CYCLE_COUNT_LO = 0x090, Read, Nondeterministic, 0, "GPU clock cycles while the counter runs, low word.";
    CYCLE_COUNT_HI = 0x094, Read, Nondeterministic, 0, "GPU clock cycles while the counter runs, high word.";
    TIMESTAMP_LO = 0x098, Read, Nondeterministic, 0, "System counter, low word.";
    TIMESTAMP_HI = 0x09C, Read, Nondeterministic, 0, "System counter, high word.";
    THREAD_MAX_THREADS = 0x0A0, Read, Identity, 0, "Threads per core; 0 means the architecture's default.";
    THREAD_MAX_WORKGROUP_SIZE = 0x0A4, Read, Identity, 0, "Largest work group; 0 means the architecture's default.";
    THREAD_MAX_BARRIER_SIZE = 0x0A8, Read, Identity, 0, "Largest work group with a barrier; 0 means the default.";
    THREAD_FEATURES = 0x0AC, Read, Identity, 0, "Registers per core in 15:0, task queue in 23:16, group split in 29:24.";
    TEXTURE_FEATURES_0 = 0x0B0, Read, Identity, 0, "Compressed formats 0 to 31, a bit each.";
    TEXTURE_FEATURES_1 = 0x0B4, Read, Identity, 0, "Texture formats 32 to 63, a bit each.";
    TEXTURE_FEATURES_2 = 0x0B8, Read, Identity, 0, "Texture formats 64 to 95, a bit each.";
    TEXTURE_FEATURES_3 = 0x0BC, Read, Identity, 0, "Texture formats 96 to 127, a bit each.";
    JS0_FEATURES = 0x0C0, Read, Identity, 0, "Job types that slot 0 runs, a bit each.";
    JS1_FEATURES = 0x0C4, Read, Identity, 0, "Job types that slot 1 runs, a bit each.";
    JS2_FEATURES = 0x0C8, Read, Identity, 0, "Job types that slot 2 runs, a bit each.";
    JS3_FEATURES = 0x0CC, Read, Identity, 0, "Job types that slot 3 runs, a bit each.";
    JS4_FEATURES = 0x0D0, Read, Identity, 0, "Job types that slot 4 runs, a bit each.";
    JS5_FEATURES = 0x0D4, Read, Identity, 0, "Job types that slot 5 runs, a bit each.";
    JS6_FEATURES = 0x0D8, Read, Identity, 0, "Job types that slot 6 runs, a bit each.";
    JS7_FEATURES = 0x0DC, Read, Identity, 0, "Job types that slot 7 runs, a bit each.";
    JS8_FEATURES = 0x0E0, Read, Identity, 0, "Job types that slot 8 runs, a bit each.";
    JS9_FEATURES = 0x0E4, Read, Identity, 0, "Job types that slot 9 runs, a bit each.";
    JS10_FEATURES = 0x0E8, Read, Identity, 0, "Job types that slot 10 runs, a bit each.";
    JS11_FEATURES = 0x0EC, Read, Identity, 0, "Job types that slot 11 runs, a bit each.";
    JS12_FEATURES = 0x0F0, Read, Identity, 0, "Job types that slot 12 runs, a bit each.";
    JS13_FEATURES = 0x0F4, Read, Identity, 0, "Job types that slot 13 runs, a bit each.";
    JS14_FEATURES = 0x0F8, Read, Identity, 0, "Job types that slot 14 runs, a bit each.";
    JS15_FEATURES = 0x0FC, Read, Identity, 0, "Job types that slot 15 runs, a bit each.";
    SHADER_PRESENT_LO = 0x100, Read, Identity, 0, "Bitmap of shader cores, low word.";
    SHADER_PRESENT_HI = 0x104, Read, Identity, 0, "Bitmap of shader cores, high word.";
    TILER_PRESENT_LO = 0x110, Read, Identity, 0, "Bitmap of tilers, low word.";
    TILER_PRESENT_HI = 0x114, Read, Identity, 0, "Bitmap of tilers, high word.";
    L2_PRESENT_LO = 0x120, Read, Identity, 0, "Bitmap of level-2 caches, low word.";
    L2_PRESENT_HI = 0x124, Read, Identity, 0, "Bitmap of level-2 caches, high word.";
    SHADER_READY_LO = 0x140, Read, Power, 0, "Shader cores that are on, low word.";
    SHADER_READY_HI = 0x144, Read, Power, 0, "Shader cores that are on, high word.";
    TILER_READY_LO = 0x150, Read, Power, 0, "Tilers that are on, low word.";
    TILER_READY_HI = 0x154, Read, Power, 0, "Tilers that are on, high word.";
    L2_READY_LO = 0x160, Read, Power, 0, "Level-2 caches that are on, low word.";
    L2_READY_HI = 0x164, Read, Power, 0, "Level-2 caches that are on, high word.";
    SHADER_PWRON_LO = 0x180, Write, Power, 0, "Switches shader cores on, low word.";
    SHADER_PWRON_HI = 0x184, Write, Power, 0, "Switches shader cores on, high word.";
    TILER_PWRON_LO = 0x190, Write, Power, 0, "Switches tilers on, low word.";
    TILER_PWRON_HI = 0x194, Write, Power, 0, "Switches tilers on, high word.";
    L2_PWRON_LO = 0x1A0, Write, Power, 0, "Switches level-2 caches on, low word.";
    L2_PWRON_HI = 0x1A4, Write, Power, 0, "Switches level-2 caches on, high word.";
    SHADER_PWROFF_LO = 0x1C0, Write, Power, 0, "Switches shader cores off, low word.";
    SHADER_PWROFF_HI = 0x1C4, Write, Power, 0, "Switches shader cores off, high word.";
    TILER_PWROFF_LO = 0x1D0, Write, Power, 0, "Switches tilers off, low word.";
    TILER_PWROFF_HI = 0x1D4, Write, Power, 0, "Switches tilers off, high word.";
    L2_PWROFF_LO = 0x1E0, Write, Power, 0, "Switches level-2 caches off, low word.";
    L2_PWROFF_HI = 0x1E4, Write, Power, 0, "Switches level-2 caches off, high word.";
    SHADER_PWRTRANS_LO = 0x200, Read, Power, 0, "Shader cores that change power state, low word.";
    SHADER_PWRTRANS_HI = 0x204, Read, Power, 0, "Shader cores that change power state, high word.";
    TILER_PWRTRANS_LO = 0x210, Read, Power, 0, "Tilers that change power state, low word.";
    TILER_PWRTRANS_HI = 0x214, Read, Power, 0, "Tilers that change power state, high word.";
    L2_PWRTRANS_LO = 0x220, Read, Power, 0, "Level-2 caches that change power state, low word.";
    L2_PWRTRANS_HI = 0x224, Read, Power, 0, "Level-2 caches that change power state, high word.";
    SHADER_PWRACTIVE_LO = 0x240, Read, Power, 0, "Shader cores that work, low word.";
    SHADER_PWRACTIVE_HI = 0x244, Read, Power, 0, "Shader cores that work, high word.";
    TILER_PWRACTIVE_LO = 0x250, Read, Power, 0, "Tilers that work, low word.";
    TILER_PWRACTIVE_HI = 0x254, Read, Power, 0, "Tilers that work, high word.";
    L2_PWRACTIVE_LO = 0x260, Read, Power, 0, "Level-2 caches that work, low word.";
    L2_PWRACTIVE_HI = 0x264, Read, Power, 0, "Level-2 caches that work, high word.";
    COHERENCY_FEATURES = 0x300, Read, Identity, 0, "Coherency protocols that the GPU speaks: bit 0 ACE-lite, bit 1 ACE.";
    COHERENCY_ENABLE = 0x304, ReadWrite, Quirk, 0, "Coherency protocol in use: 0 ACE-lite, 1 ACE, 31 none.";
    THREAD_TLS_ALLOC = 0x310, Read, Identity, 0, "Threads per core that need thread storage; 0 means THREAD_MAX_THREADS.";
    STACK_PRESENT_LO = 0xE00, Read, Identity, 0, "Bitmap of core stacks, low word.";
    STACK_PRESENT_HI = 0xE04, Read, Identity, 0, "Bitmap of core stacks, high word.";
    STACK_READY_LO = 0xE10, Read, Power, 0, "Core stacks that are on, low word.";
    STACK_READY_HI = 0xE14, Read, Power, 0, "Core stacks that are on, high word.";
    STACK_PWRON_LO = 0xE20, Write, Power, 0, "Switches core stacks on, low word.";
    STACK_PWRON_HI = 0xE24, Write, Power, 0, "Switches core stacks on, high word.";
    STACK_PWROFF_LO = 0xE30, Write, Power, 0, "Switches core stacks off, low word.";
    STACK_PWROFF_HI = 0xE34, Write, Power, 0, "Switches core stacks off, high word.";
    STACK_PWRTRANS_LO = 0xE40, Read, Power, 0, "Core stacks that change power state, low word.";
    STACK_PWRTRANS_HI = 0xE44, Read, Power, 0, "Core stacks that change power state, high word.";
    JM_CONFIG = 0xF00, ReadWrite, Quirk, 0, "Job manager quirks.";
    SHADER_CONFIG = 0xF04, ReadWrite, Quirk, 0, "Shader core quirks.";
    TILER_CONFIG = 0xF08, ReadWrite, Quirk, 0, "Tiler quirks.";
    L2_MMU_CONFIG = 0xF0C, ReadWrite, Quirk, 0, "Level-2 cache and MMU quirks: bus throttling.";
}

bitflags! {
    /// Bits of GPU_INT registers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct GpuInterrupt: u32 {
        /// See GPU_FAULT_STATUS.
        const FAULT = 1 << 0;
        /// Another fault, before the first was cleared.
        const MULTIPLE_FAULT = 1 << 7;
        /// Soft or hard.
        const RESET_COMPLETED = 1 << 8;
        /// One domain's new state.
        const POWER_CHANGED_SINGLE = 1 << 9;
        /// All domains' new states.
        const POWER_CHANGED_ALL = 1 << 10;
        /// A sample of counters is in memory.
        const PRFCNT_SAMPLE_COMPLETED = 1 << 16;
        /// A cache clean is over.
        const CLEAN_CACHES_COMPLETED = 1 << 17;
    }
}

/// PWR_KEY: unlocks PWR_OVERRIDE0 and PWR_OVERRIDE1.
pub const PWR_KEY_UNLOCK: u32 = 0x2968_a819;

commands! {
    /// Values of GPU_CMD.
    GpuCommand {
        /// Nothing.
        Nop = 0,
        /// Stops jobs, waits for bus transactions, resets.
        SoftReset = 1,
        /// Resets at once.
        HardReset = 2,
        /// Zeroes performance counters.
        CounterClear = 3,
        /// Dumps performance counters.
        CounterSample = 4,
        /// Starts the cycle counter.
        CycleCountStart = 5,
        /// Stops the cycle counter.
        CycleCountStop = 6,
        /// Writes dirty cache lines back.
        CleanCaches = 7,
        /// Writes back, drops all lines.
        CleanInvalidateCaches = 8,
        /// Enters protected mode.
        SetProtectedMode = 9,
    }
}

/// The GPU_ID register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuId(pub u32);

impl GpuId {
    /// Architecture in the top nibble, then product.
    pub const fn product(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Bifrost: 6 or 7; Valhall: 9 or 10.
    pub const fn architecture(self) -> u32 {
        self.0 >> 28
    }

    /// The `r` in r0p3.
    pub const fn major(self) -> u32 {
        self.0 >> 12 & 0xf
    }

    /// The `p` in r0p3.
    pub const fn minor(self) -> u32 {
        self.0 >> 4 & 0xff
    }

    /// Status nibble.
    pub const fn status(self) -> u32 {
        self.0 & 0xf
    }

    /// Marketing name, if known.
    pub const fn name(self) -> Option<&'static str> {
        // A design's products differ in the architecture's minor and revision nibbles.
        Some(match self.0 >> 16 & 0xf00f {
            0x6000 => "Mali-G71",
            0x6001 => "Mali-G72",
            0x7000 => "Mali-G51",
            0x7001 => "Mali-G76",
            0x7002 => "Mali-G52",
            0x7003 => "Mali-G31",
            0x9000 => "Mali-G77",
            0x9001 => "Mali-G57",
            0x9003 => "Mali-G57",
            0xa007 => "Mali-G610",
            _ => return None,
        })
    }
}

impl From<u32> for GpuId {
    fn from(id: u32) -> Self {
        Self(id)
    }
}

impl fmt::Display for GpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "GPU {:#06x}", self.product())?,
        }
        write!(f, " r{}p{}", self.major(), self.minor())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn gpu_ids_are_named() {
        for (id, text) in [
            (0x7212_0000, "Mali-G52 r0p0"),
            (0x7093_0000, "Mali-G31 r0p0"),
            (0x7211_0000, "Mali-G76 r0p0"),
            (0x6221_0030, "Mali-G72 r0p3"),
            (0x60a0_0002, "Mali-G71 r0p0"),
            (0x7402_1000, "Mali-G52 r1p0"),
            (0x1234_0000, "GPU 0x1234 r0p0"),
        ] {
            assert_eq!(GpuId(id).to_string(), text);
        }
    }
}
