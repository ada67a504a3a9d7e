// SPDX-License-Identifier: MIT OR Apache-2.0
//! GET_PARAM's parameters (`enum drm_panfrost_param`), and registers.

use crate::registers::gpu;

/// High half of GPU_ID.
pub const PRODUCT: u32 = 0;
/// Low half of GPU_ID.
pub const REVISION: u32 = 1;
/// SHADER_PRESENT.
pub const SHADER_PRESENT: u32 = 2;
/// COHERENCY_FEATURES.
pub const COHERENCY_FEATURES: u32 = 17;
/// With an L2 cache.
pub const CORE_GROUPS: u32 = 38;
/// TIMESTAMP when asked for.
pub const TIMESTAMP: u32 = 41;
/// TIMESTAMP's cycles per second.
pub const TIMESTAMP_FREQUENCY: u32 = 42;
/// Of GPU and processor caches (panfrost 1.6).
pub const SELECTED_COHERENCY: u32 = 44;
/// [`SELECTED_COHERENCY`]: ACE-Lite.
pub const COHERENT: u64 = 0;
/// [`SELECTED_COHERENCY`]: not at all.
pub const NOT_COHERENT: u64 = 31;

const JOB_SLOT_FEATURES: u32 = 22;
const JOB_SLOTS: u32 = 16;

/// Parameter of one or two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Parameter's number.
    pub number: u32,
    /// In bytes.
    pub register: u32,
    /// The next register is its high word.
    pub wide: bool,
}

const fn word(number: u32, register: u32) -> Shown {
    Shown {
        number,
        register,
        wide: false,
    }
}

const fn pair(number: u32, register: u32) -> Shown {
    Shown {
        number,
        register,
        wide: true,
    }
}

/// In the driver's order (`panfrost_gpu_init_features`).
static SHOWN: [Shown; 22] = [
    word(8, gpu::L2_FEATURES),
    word(9, gpu::CORE_FEATURES),
    word(10, gpu::TILER_FEATURES),
    word(11, gpu::MEM_FEATURES),
    word(12, gpu::MMU_FEATURES),
    word(6, gpu::AS_PRESENT),
    word(7, gpu::JS_PRESENT),
    word(40, gpu::AFBC_FEATURES),
    word(14, gpu::THREAD_MAX_THREADS),
    word(15, gpu::THREAD_MAX_WORKGROUP_SIZE),
    word(16, gpu::THREAD_MAX_BARRIER_SIZE),
    word(13, gpu::THREAD_FEATURES),
    word(18, gpu::TEXTURE_FEATURES_0),
    word(19, gpu::TEXTURE_FEATURES_1),
    word(20, gpu::TEXTURE_FEATURES_2),
    word(21, gpu::TEXTURE_FEATURES_3),
    word(COHERENCY_FEATURES, gpu::COHERENCY_FEATURES),
    pair(SHADER_PRESENT, gpu::SHADER_PRESENT_LO),
    pair(3, gpu::TILER_PRESENT_LO),
    pair(4, gpu::L2_PRESENT_LO),
    pair(5, gpu::STACK_PRESENT_LO),
    word(39, gpu::THREAD_TLS_ALLOC),
];

/// Parameters in the driver's order; without GPU_ID, of two halves.
pub fn shown() -> impl Iterator<Item = Shown> {
    let slots =
        (0..JOB_SLOTS).map(|slot| word(JOB_SLOT_FEATURES + slot, gpu::JS0_FEATURES + 4 * slot));
    SHOWN.iter().copied().chain(slots)
}

/// GPU_ID, from the two parameters.
pub const fn gpu_id(product: u64, revision: u64) -> gpu::GpuId {
    gpu::GpuId((product as u32) << 16 | revision as u32 & 0xffff)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::registers::{Class, all};

    #[test]
    fn every_register_of_identity_is_shown_once() {
        let mut registers: Vec<u32> = shown()
            .flat_map(|it| [Some(it.register), it.wide.then_some(it.register + 4)])
            .flatten()
            .chain([gpu::GPU_ID])
            .collect();
        registers.sort_unstable();
        let before = registers.len();
        registers.dedup();
        assert_eq!(registers.len(), before);
        let identity = all().filter(|it| it.class() == Class::Identity && it.offset() < 0x1000);
        for register in identity {
            assert!(registers.contains(&register.offset()), "{register}");
        }
        let mut numbers: Vec<u32> = shown().map(|it| it.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), shown().count());
    }

    #[test]
    fn the_identity_has_two_halves() {
        assert_eq!(gpu_id(0x7212, 0x1_0030).0, 0x7212_0030);
    }
}
