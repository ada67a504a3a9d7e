// SPDX-License-Identifier: MIT OR Apache-2.0
//! What panfrost reads from the GPU and writes to it, as far as a trace needs it. User space sees no register: identity comes from
//! parameters, settings and job slots are constants of the driver.

use mali_facts::registers::gpu::{self, GpuId};
use mali_facts::registers::{JobConfigFlags, TranslationTable, address_space, job_slot};

/// `DRM_PANFROST_PARAM_*`
pub(crate) const PRODUCT: u32 = 0;
pub(crate) const REVISION: u32 = 1;
pub(crate) const SHADER_PRESENT: u32 = 2;
/// Panfrost 1.6 and later.
pub(crate) const SELECTED_COHERENCY: u32 = 44;
/// `DRM_PANFROST_GPU_COHERENCY_NONE`
pub(crate) const NOT_COHERENT: u64 = 31;

const JOB_SLOTS: u32 = 7;
const JOB_SLOT_FEATURES: u32 = 22;

/// Parameters that are one register.
const WORDS: [(u32, u32); 17] = [
    (8, gpu::L2_FEATURES),
    (9, gpu::CORE_FEATURES),
    (10, gpu::TILER_FEATURES),
    (11, gpu::MEM_FEATURES),
    (12, gpu::MMU_FEATURES),
    (6, gpu::AS_PRESENT),
    (JOB_SLOTS, gpu::JS_PRESENT),
    (40, gpu::AFBC_FEATURES),
    (14, gpu::THREAD_MAX_THREADS),
    (15, gpu::THREAD_MAX_WORKGROUP_SIZE),
    (16, gpu::THREAD_MAX_BARRIER_SIZE),
    (13, gpu::THREAD_FEATURES),
    (18, gpu::TEXTURE_FEATURES_0),
    (19, gpu::TEXTURE_FEATURES_1),
    (20, gpu::TEXTURE_FEATURES_2),
    (21, gpu::TEXTURE_FEATURES_3),
    (17, gpu::COHERENCY_FEATURES),
];
/// Parameters that are two registers, by the low one.
const PAIRS: [(u32, u32); 4] = [
    (SHADER_PRESENT, gpu::SHADER_PRESENT_LO),
    (3, gpu::TILER_PRESENT_LO),
    (4, gpu::L2_PRESENT_LO),
    (5, gpu::STACK_PRESENT_LO),
];
/// A parameter that is one register, and which older drivers do not know.
const THREAD_STORAGE: (u32, u32) = (39, gpu::THREAD_TLS_ALLOC);

/// Registers that the driver has read, with their values; `param` answers for the driver.
pub(crate) fn identity(param: impl Fn(u32) -> Option<u64>) -> Vec<(u32, u32)> {
    let value = |which| param(which).unwrap_or(0);
    let mut registers = vec![(gpu::GPU_ID, gpu_id(&param).0)];
    registers.extend(WORDS.map(|(which, register)| (register, value(which) as u32)));
    for (which, register) in PAIRS {
        let value = value(which);
        registers.push((register, value as u32));
        registers.push((register + 4, (value >> 32) as u32));
    }
    if let Some(value) = param(THREAD_STORAGE.0) {
        registers.push((THREAD_STORAGE.1, value as u32));
    }
    let slots = value(JOB_SLOTS);
    for slot in 0..16 {
        let features = match slots >> slot & 1 {
            0 => 0,
            _ => value(JOB_SLOT_FEATURES + slot) as u32,
        };
        registers.push((gpu::JS0_FEATURES + 4 * slot, features));
    }
    registers
}

fn gpu_id(param: &impl Fn(u32) -> Option<u64>) -> GpuId {
    let value = |which| param(which).unwrap_or(0) as u32;
    GpuId(value(PRODUCT) << 16 | value(REVISION) & 0xffff)
}

/// Settings that the driver writes after a reset: `panfrost_gpu_init_quirks` with `panfrost_features.h` and `panfrost_issues.h` of
/// Linux 6.12 (7.3 writes the same). It also writes back what it has read from TILER_CONFIG, which changes nothing.
pub(crate) fn settings(param: impl Fn(u32) -> Option<u64>) -> Vec<(u32, u32)> {
    const ACE: u64 = 1 << 1;
    /// SC_TLS_HASH_ENABLE
    const HASH: u32 = 1 << 17;
    /// JM_DEFAULT_IDVS_GROUP_SIZE
    const GROUPS: u32 = 0xf << 16;
    /// ACE_LITE and ACE in JM_FORCE_COHERENCY_FEATURES.
    const FORCED: u32 = 0b11 << 2;
    let id = gpu_id(&param);
    let mut settings = Vec::new();
    match id.name() {
        Some("Mali-G76") => {
            settings.extend([(gpu::SHADER_CONFIG, HASH), (gpu::JM_CONFIG, GROUPS)]);
        }
        Some("Mali-G52") => settings.push((gpu::JM_CONFIG, GROUPS)),
        Some("Mali-G31") => settings.push((gpu::SHADER_CONFIG, HASH)),
        Some("Mali-G71") => {
            // HW_ISSUE_T76X_3953 of r0p0 05dev0.
            if id.0 & 0xffff == 1 {
                settings.push((gpu::TILER_CONFIG, 1));
            }
            if param(17) == Some(ACE) {
                settings.push((gpu::JM_CONFIG, FORCED));
            }
        }
        _ => {}
    }
    settings
}

/// A job as the driver gives it to a slot.
pub(crate) struct Start {
    /// Job slot.
    pub(crate) slot: u8,
    /// Address space.
    pub(crate) space: u32,
    /// Which of the app's files it is of, from 0.
    pub(crate) file: u32,
    /// GPU virtual address of the chain.
    pub(crate) head: u64,
    /// SHADER_PRESENT.
    pub(crate) cores: u64,
    /// Jobs of the slot before it.
    pub(crate) jobs: u32,
}

impl Start {
    /// Register writes before the doorbell: `panfrost_job_hw_submit`. The page table's address is a number of the file, so that a
    /// second file is seen as one.
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

    /// The doorbell.
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
            PRODUCT => Some(product),
            REVISION => Some(revision),
            17 => Some(2),
            _ => None,
        })
    }

    /// What the patched panfrost of Linux 6.12 wrote on the model's products, by their kernel traces.
    #[test]
    fn settings_by_product() {
        assert_eq!(of(0x7212, 0), [(0xf00, 0xf_0000)]);
        assert_eq!(of(0x7093, 0), [(0xf04, 0x2_0000)]);
        assert_eq!(of(0x7211, 0), [(0xf04, 0x2_0000), (0xf00, 0xf_0000)]);
        assert_eq!(of(0x6221, 0x30), []);
        assert_eq!(of(0x60a0, 2), [(0xf00, 0xc)]);
        assert_eq!(of(0x1234, 0), []);
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
        // JS_CONFIG of the kernel trace of saxpy on Linux 6.12.
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
            PRODUCT => Some(0x7212),
            JOB_SLOTS => Some(0b11),
            23 => Some(0x1ff),
            SHADER_PRESENT => Some(0x1_0000_0003),
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
