// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panfrost's register accesses for a trace. User space sees no register: identity comes from parameters; settings
//! and job slots are constants of the driver.

use mali_facts::panfrost::parameter;
use mali_facts::registers::gpu::{self, GpuId};
use mali_facts::registers::{JobConfigFlags, TranslationTable, address_space, job_slot};

/// SC_TLS_HASH_ENABLE
const HASH: u32 = 1 << 17;
/// SC_VAR_ALGORITHM
const VARYINGS: u32 = 1 << 29;
/// JM_DEFAULT_IDVS_GROUP_SIZE
const GROUPS: u32 = 0xf << 16;

pub(crate) fn identity(param: impl Fn(u32) -> Option<u64>) -> Vec<(u32, u32)> {
    let mut registers = vec![(gpu::GPU_ID, id(&param).0)];
    for shown in parameter::shown() {
        let value = match param(shown.number) {
            Some(value) => value,
            // Unknown to older drivers.
            None if shown.register == gpu::THREAD_TLS_ALLOC => continue,
            None => 0,
        };
        registers.push((shown.register, value as u32));
        if shown.wide {
            registers.push((shown.register + 4, (value >> 32) as u32));
        }
    }
    registers
}

fn id(param: &impl Fn(u32) -> Option<u64>) -> GpuId {
    let value = |which| param(which).unwrap_or(0);
    parameter::gpu_id(value(parameter::PRODUCT), value(parameter::REVISION))
}

/// Written after a reset: `panfrost_gpu_init_quirks` with `panfrost_features.h` and `panfrost_issues.h` of Linux
/// 6.12 (7.3 writes the same). It also writes back what it has read from TILER_CONFIG, which changes nothing.
pub(crate) fn settings(param: impl Fn(u32) -> Option<u64>) -> Vec<(u32, u32)> {
    const ACE: u64 = 1 << 1;
    /// ACE_LITE and ACE in JM_FORCE_COHERENCY_FEATURES.
    const FORCED: u32 = 0b11 << 2;
    let id = id(&param);
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

/// Written by kbase after a reset: `kbase_set_hw_quirks` with `mali_base_hwconfig_features.h` of r37p0 and r44p1.
/// It also writes back what it has read, which changes nothing.
pub(crate) fn settings_of_kbase(gpu_id: u32) -> Vec<(u32, u32)> {
    let id = GpuId(gpu_id);
    match id.name() {
        Some("Mali-G76" | "Mali-G52") => vec![(gpu::SHADER_CONFIG, HASH), (gpu::JM_CONFIG, GROUPS)],
        Some("Mali-G57") => vec![(gpu::JM_CONFIG, GROUPS)],
        Some("Mali-G71") if id.0 & 0xffff == 1 => vec![(gpu::TILER_CONFIG, 1)],
        _ => Vec::new(),
    }
}

pub(crate) struct Start {
    pub(crate) slot: u8,
    pub(crate) space: u32,
    /// From 0, of the app's.
    pub(crate) file: u32,
    /// GPU address of the chain.
    pub(crate) head: u64,
    /// SHADER_PRESENT.
    pub(crate) cores: u64,
    /// Earlier jobs of the slot.
    pub(crate) jobs: u32,
}

impl Start {
    /// Register writes before the doorbell: `panfrost_job_hw_submit`. The page table's address is a number of the
    /// file, so that a second file is seen as one.
    pub(crate) fn writes(&self) -> [(u32, u32); 7] {
        let table = TranslationTable::legacy(u64::from(self.file + 1) << 12, false).0;
        let register = |register| job_slot::offset(u32::from(self.slot), register);
        let space = |register| address_space::offset(self.space, register);
        let mut flags = JobConfigFlags::START_FLUSH_CLEAN
            | JobConfigFlags::START_FLUSH_INVALIDATE
            | JobConfigFlags::END_FLUSH_CLEAN
            | JobConfigFlags::END_FLUSH_INVALIDATE
            | JobConfigFlags::FLUSH_REDUCTION;
        flags.set(JobConfigFlags::CHAIN_FLAG, self.jobs.is_multiple_of(2));
        const PRIORITY: u32 = 8 << 16;
        [
            (space(address_space::TRANSTAB_LO), table as u32),
            (space(address_space::TRANSTAB_HI), (table >> 32) as u32),
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

    pub(crate) fn doorbell(&self) -> (u32, u32) {
        let register = job_slot::offset(u32::from(self.slot), job_slot::COMMAND_NEXT);
        (register, mali_facts::registers::JobCommand::Start as u32)
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

    /// Settings by kernel traces of the patched panfrost of Linux 6.12 on the model's products.
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

    /// Settings by the kernel trace of the patched kbase r37p0 on the model's G52, but for zeros.
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
        let registers = identity(|which| match which {
            parameter::PRODUCT => Some(0x7212),
            7 => Some(0b11),
            23 => Some(0x1ff),
            parameter::SHADER_PRESENT => Some(0x1_0000_0003),
            _ => None,
        });
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
