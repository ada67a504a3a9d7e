// SPDX-License-Identifier: MIT OR Apache-2.0
//! Register accesses of a driver, for a trace: user space sees none.

use alloc::vec;
use alloc::vec::Vec;

use mali_facts::registers::gpu::{self, GpuId};
use mali_facts::registers::{
    JobCommand, JobConfigFlags, TranslationTable, address_space, job_slot,
};

use crate::kbase;
use crate::panfrost::parameter;
use crate::panthor::{self, GpuInfo};

/// SC_TLS_HASH_ENABLE
const HASH: u32 = 1 << 17;
/// SC_VAR_ALGORITHM
const VARYINGS: u32 = 1 << 29;
/// JM_DEFAULT_IDVS_GROUP_SIZE
const GROUPS: u32 = 0xf << 16;

/// Offset and value.
type Access = (u32, u32);

/// What a driver does before the first job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// What the GPU is.
    pub reads: Vec<Access>,
    /// Settings after a reset.
    pub writes: Vec<Access>,
    /// SHADER_PRESENT.
    pub cores: u64,
}

impl Opened {
    /// From parameters. One that the driver does not tell is 0, or new.
    pub fn by_panfrost(parameter: impl Fn(u32) -> Option<u64>) -> Self {
        let told = |which| parameter(which).or((which != parameter::THREAD_TLS_ALLOC).then_some(0));
        Self {
            reads: parameter::registers(told).collect(),
            writes: settings(&parameter),
            cores: parameter(parameter::SHADER_PRESENT).unwrap_or(0),
        }
    }

    /// From properties.
    pub fn by_kbase(properties: &[kbase::Property]) -> Self {
        let reads: Vec<Access> = properties
            .iter()
            .copied()
            .flat_map(kbase::registers)
            .collect();
        let of = |register| {
            let found = reads.iter().find(|read| read.0 == register);
            found.map_or(0, |read| read.1)
        };
        Self {
            writes: settings_of_kbase(of(gpu::GPU_ID)),
            cores: u64::from(of(gpu::SHADER_PRESENT_LO))
                | u64::from(of(gpu::SHADER_PRESENT_HI)) << 32,
            reads,
        }
    }

    /// Firmware and kernel make all settings.
    pub fn by_panthor(info: &GpuInfo) -> Self {
        Self {
            reads: panthor::registers(info).to_vec(),
            writes: Vec::new(),
            cores: info.shader_present,
        }
    }
}

/// After a reset: `panfrost_gpu_init_quirks` with `panfrost_features.h` and `panfrost_issues.h` of Linux 6.12 (7.3 does
/// the same). It also writes back what it read from TILER_CONFIG, which changes nothing.
fn settings(param: impl Fn(u32) -> Option<u64>) -> Vec<Access> {
    const ACE: u64 = 1 << 1;
    /// ACE_LITE and ACE in JM_FORCE_COHERENCY_FEATURES.
    const FORCED: u32 = 0b11 << 2;
    let told = |which| param(which).unwrap_or(0);
    let id = parameter::gpu_id(told(parameter::PRODUCT), told(parameter::REVISION));
    let mut settings = Vec::new();
    match id.name() {
        Some("Mali-G76") => {
            settings.extend([(gpu::SHADER_CONFIG, HASH), (gpu::JM_CONFIG, GROUPS)]);
        }
        Some("Mali-G57") => {
            settings.extend([(gpu::SHADER_CONFIG, VARYINGS), (gpu::JM_CONFIG, GROUPS)]);
        }
        Some("Mali-G52") => settings.push((gpu::JM_CONFIG, GROUPS)),
        Some("Mali-G31") => settings.push((gpu::SHADER_CONFIG, HASH)),
        Some("Mali-G71") => {
            // HW_ISSUE_T76X_3953 of r0p0 05dev0.
            if id.0 & 0xffff == 1 {
                settings.push((gpu::TILER_CONFIG, 1));
            }
            if param(parameter::COHERENCY_FEATURES) == Some(ACE) {
                settings.push((gpu::JM_CONFIG, FORCED));
            }
        }
        _ => {}
    }
    settings
}

/// After a reset: `kbase_set_hw_quirks` with `mali_base_hwconfig_features.h` of r37p0 and r44p1. It also writes back
/// what it read, which changes nothing.
fn settings_of_kbase(gpu_id: u32) -> Vec<Access> {
    let id = GpuId(gpu_id);
    match id.name() {
        Some("Mali-G76" | "Mali-G52") => vec![(gpu::SHADER_CONFIG, HASH), (gpu::JM_CONFIG, GROUPS)],
        Some("Mali-G57") => vec![(gpu::JM_CONFIG, GROUPS)],
        Some("Mali-G71") if id.0 & 0xffff == 1 => vec![(gpu::TILER_CONFIG, 1)],
        _ => Vec::new(),
    }
}

/// Page tables of an app's file (from 0) in an address space: a number that tells files apart.
pub fn page_tables(space: u32, file: u32) -> [Access; 2] {
    let table = TranslationTable::legacy(u64::from(file + 1) << 12, false).0;
    let register = |register| address_space::offset(space, register);
    [
        (register(address_space::TRANSTAB_LO), table as u32),
        (register(address_space::TRANSTAB_HI), (table >> 32) as u32),
    ]
}

/// Start of a job chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Job slot.
    pub slot: u8,
    /// Address space.
    pub space: u32,
    /// The app's file, from 0.
    pub file: u32,
    /// The chain's GPU address.
    pub head: u64,
    /// SHADER_PRESENT.
    pub cores: u64,
    /// Earlier jobs of the slot.
    pub jobs: u32,
}

impl Start {
    /// Register writes before the doorbell: `panfrost_job_hw_submit`.
    pub fn writes(&self) -> [Access; 7] {
        let [low, high] = page_tables(self.space, self.file);
        let register = |register| job_slot::offset(u32::from(self.slot), register);
        let mut flags = JobConfigFlags::START_FLUSH_CLEAN
            | JobConfigFlags::START_FLUSH_INVALIDATE
            | JobConfigFlags::END_FLUSH_CLEAN
            | JobConfigFlags::END_FLUSH_INVALIDATE
            | JobConfigFlags::FLUSH_REDUCTION;
        flags.set(JobConfigFlags::CHAIN_FLAG, self.jobs.is_multiple_of(2));
        const PRIORITY: u32 = 8 << 16;
        [
            low,
            high,
            (register(job_slot::HEAD_NEXT_LO), self.head as u32),
            (register(job_slot::HEAD_NEXT_HI), (self.head >> 32) as u32),
            (register(job_slot::AFFINITY_NEXT_LO), self.cores as u32),
            (
                register(job_slot::AFFINITY_NEXT_HI),
                (self.cores >> 32) as u32,
            ),
            (
                register(job_slot::CONFIG_NEXT),
                PRIORITY | flags.bits() | self.space,
            ),
        ]
    }

    /// The write that starts it.
    pub fn doorbell(&self) -> Access {
        let register = job_slot::offset(u32::from(self.slot), job_slot::COMMAND_NEXT);
        (register, JobCommand::Start as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(product: u64, revision: u64) -> Vec<(u32, u32)> {
        settings(move |which| match which {
            parameter::PRODUCT => Some(product),
            parameter::REVISION => Some(revision),
            parameter::COHERENCY_FEATURES => Some(2),
            _ => None,
        })
    }

    /// From kernel traces of the patched panfrost of Linux 6.12 on the model's products.
    #[test]
    fn settings_by_product() {
        assert_eq!(of(0x7212, 0), [(0xf00, 0xf_0000)]);
        assert_eq!(of(0x7093, 0), [(0xf04, 0x2_0000)]);
        assert_eq!(of(0x7211, 0), [(0xf04, 0x2_0000), (0xf00, 0xf_0000)]);
        for g57 in [0x9091, 0x9093] {
            assert_eq!(of(g57, 0), [(0xf04, 0x2000_0000), (0xf00, 0xf_0000)]);
        }
        assert_eq!(of(0x6221, 0x30), []);
        assert_eq!(of(0x60a0, 2), [(0xf00, 0xc)]);
        assert_eq!(of(0x1234, 0), []);
    }

    /// From the kernel trace of the patched kbase r37p0 on the model's G52, but for zeros.
    #[test]
    fn settings_of_arms_driver() {
        assert_eq!(
            settings_of_kbase(0x7212_0000),
            [(0xf04, 0x2_0000), (0xf00, 0xf_0000)]
        );
        assert_eq!(settings_of_kbase(0x7093_0000), []);
    }

    #[test]
    fn a_first_job_is_configured_as_panfrost_does() {
        let start = Start {
            slot: 1,
            space: 0,
            file: 0,
            head: 0x1_2000_0040,
            cores: 3,
            jobs: 0,
        };
        let writes = start.writes();
        // From saxpy's kernel trace on Linux 6.12.
        assert_eq!(writes[6], (0x18d8, 0x87b00));
        assert_eq!(
            writes[2..6]
                .iter()
                .map(|(_, value)| *value)
                .collect::<Vec<_>>(),
            [0x2000_0040, 1, 3, 0]
        );
        assert_eq!(start.doorbell(), (0x18e0, 1));
    }

    #[test]
    fn identity_is_what_parameters_say() {
        let opened = Opened::by_panfrost(|which| match which {
            parameter::PRODUCT => Some(0x7212),
            7 => Some(0b11),
            23 => Some(0x1ff),
            parameter::SHADER_PRESENT => Some(0x1_0000_0003),
            _ => None,
        });
        let registers = opened.reads;
        assert_eq!(registers[0], (0, 0x7212_0000));
        for wanted in [
            (0x01c, 3),
            (0x100, 3),
            (0x104, 1),
            (0x0c4, 0x1ff),
            (0x0c8, 0),
        ] {
            assert!(registers.contains(&wanted), "{wanted:?}");
        }
        assert!(registers.iter().all(|(register, _)| *register != 0x310));
    }
}
