// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPUs with command streams.
//!
//! A list apart: tools for job slots cannot choose one.

use crate::products::without_family;
use crate::profile::{Profile, Source};
use crate::registers::GpuId;
use crate::{Architecture, Board};

/// GPU with command streams, as its driver tells of it.
#[derive(Clone, Debug)]
pub struct StreamGpu {
    /// Without job slots.
    pub profile: Profile,
    /// CSF_ID.
    pub csf_id: u32,
    /// Groups that run at once.
    pub groups: u32,
    /// Per group.
    pub streams: u32,
    /// Per stream.
    pub registers: u32,
    /// Per stream.
    pub scoreboards: u32,
}

impl StreamGpu {
    /// Last registers of a stream, for the kernel driver's calls.
    pub const KERNEL_REGISTERS: u32 = 4;

    /// GPU (`g610`, any case, also with `mali-`) or board.
    pub fn by_name(name: &str) -> Option<&'static StreamGpu> {
        let lower = |text: &str, other: &str| text.eq_ignore_ascii_case(other);
        let board = STREAM_BOARDS.iter().find(|board| lower(board.name, name));
        let product = board.map_or(without_family(name), |board| board.profile);
        let mut all = STREAM_GPUS.iter();
        all.find(|gpu| lower(gpu.profile.name, product))
    }

    /// Names known to [`StreamGpu::by_name`].
    pub fn names() -> impl Iterator<Item = &'static str> {
        let boards = STREAM_BOARDS.iter().map(|board| board.name);
        STREAM_GPUS.iter().map(|gpu| gpu.profile.name).chain(boards)
    }
}

/// All that are modelled.
pub static STREAM_GPUS: &[StreamGpu] = &[StreamGpu {
    profile: Profile {
        name: "g610",
        source: Source::BootLog("Rockchip RK3588"),
        architecture: Architecture::V10,
        gpu_id: GpuId(0xa867_0005),
        l2_features: 0x0712_0306,
        core_features: 0,
        tiler_features: 0x809,
        mem_features: 0x301,
        mmu_features: 0x2830,
        as_present: 0xff,
        js_present: 0,
        max_threads: 2048,
        max_workgroup_size: 1024,
        max_barrier_size: 1024,
        thread_features: 0x0401_0000,
        // The model decodes no compressed textures.
        texture_features: [0, 0x0000_ffff, 0x9f81_ffff, 0],
        js_features: [0; 3],
        shader_present: 0x5_0005,
        tiler_present: 1,
        l2_present: 1,
        coherency_features: 1,
        afbc_features: 1,
    },
    csf_id: 0x040a_0412,
    groups: 8,
    streams: 8,
    registers: 96,
    scoreboards: 8,
}];

/// With a GPU of [`STREAM_GPUS`].
pub static STREAM_BOARDS: &[Board] = &[Board {
    name: "rk3588",
    profile: "g610",
    source: "boot logs: GPU_ID a867, SHADER_PRESENT 50005",
}];

/// Why a stream ended badly. Source: Linux's panthor, `panthor_exception_name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStatus(pub u32);

macro_rules! statuses {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        impl StreamStatus {
            $(#[doc = $text] pub const $name: Self = Self($code);)*

            /// Name of a code that only streams have.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 & 0xff {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    CS_RES_TERM = 0x0f, "The stream was terminated.";
    CS_CONFIG_FAULT = 0x40, "An instruction's operands make no sense.";
    CS_UNRECOVERABLE = 0x41, "The firmware cannot go on.";
    CS_ENDPOINT_FAULT = 0x44, "A core that is needed is not there.";
    CS_BUS_FAULT = 0x48, "An access to memory was refused.";
    CS_INVALID_INSTRUCTION = 0x49, "An instruction does not exist, or is not executed.";
    CS_CALL_STACK_OVERFLOW = 0x4a, "Too many calls within each other.";
    CS_INHERIT_FAULT = 0x4b, "A sync object that was waited for has an error.";
    FIRMWARE_INTERNAL_ERROR = 0x68, "The firmware found its own state damaged.";
}

impl core::fmt::Display for StreamStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            // Codes of shaders and of the MMU are those of jobs.
            None => crate::registers::JobStatus(self.0).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn names_are_found_and_are_no_profiles() {
        for name in ["g610", "G610", "Mali-G610", "rk3588", "RK3588"] {
            let gpu = StreamGpu::by_name(name).unwrap();
            assert_eq!(gpu.profile.gpu_id.to_string(), "Mali-G610 r0p0");
        }
        for name in StreamGpu::names() {
            assert!(StreamGpu::by_name(name).is_some());
            assert!(Profile::by_name(name).is_none(), "{name}");
        }
        for name in ["", "g61", "mali-", "g52"] {
            assert!(StreamGpu::by_name(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_group_fits_with_all_registers() {
        for gpu in STREAM_GPUS {
            let profile = &gpu.profile;
            let registers = profile.thread_features & 0x3f_ffff;
            assert_eq!(registers / 64, profile.max_workgroup_size);
            assert_eq!(registers / 32, profile.max_threads);
            assert_eq!(profile.js_present, 0);
            assert_eq!(profile.architecture, Architecture::V10);
        }
    }

    #[test]
    fn codes_have_names() {
        assert_eq!(StreamStatus(0x49).to_string(), "CS_INVALID_INSTRUCTION");
        assert_eq!(StreamStatus(0xc3).to_string(), "TRANSLATION_FAULT_3");
        assert_eq!(StreamStatus(0x55).to_string(), "INSTR_BARRIER_FAULT");
    }
}
