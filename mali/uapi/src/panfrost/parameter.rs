// SPDX-License-Identifier: MIT OR Apache-2.0
//! GET_PARAM's parameters (`enum drm_panfrost_param`), and registers.

use mali_facts::registers::gpu;

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

/// THREAD_TLS_ALLOC; unknown to older drivers.
pub const THREAD_TLS_ALLOC: u32 = 39;

const JOB_SLOT_FEATURES: u32 = 22;
const JOB_SLOTS: u32 = 16;

#[derive(Clone, Copy)]
struct Shown {
    number: u32,
    /// Offset in bytes.
    register: u32,
    /// The next register is its high word.
    wide: bool,
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
    word(THREAD_TLS_ALLOC, gpu::THREAD_TLS_ALLOC),
];

/// Without GPU_ID, which is two parameters.
fn shown() -> impl Iterator<Item = Shown> {
    let slots =
        (0..JOB_SLOTS).map(|slot| word(JOB_SLOT_FEATURES + slot, gpu::JS0_FEATURES + 4 * slot));
    SHOWN.iter().copied().chain(slots)
}

/// Offsets and values, GPU_ID first; without those that the driver does not tell.
pub fn registers(parameter: impl Fn(u32) -> Option<u64>) -> impl Iterator<Item = (u32, u32)> {
    let id = parameter(PRODUCT).zip(parameter(REVISION));
    let id = id.map(|(product, revision)| (gpu::GPU_ID, gpu_id(product, revision).0));
    let others = shown().filter_map(move |it| Some((it, parameter(it.number)?)));
    let others = others.flat_map(|(it, value)| {
        let high = it.wide.then_some((it.register + 4, (value >> 32) as u32));
        [Some((it.register, value as u32)), high]
    });
    id.into_iter().chain(others.flatten())
}

/// What the driver answers, from registers. `None`: a register does not say.
pub fn answer(number: u32, mut read: impl FnMut(u32) -> u32) -> Option<u64> {
    let word = |register| (register, false);
    let pair = |register| (register, true);
    let shown = shown().find(|it| it.number == number);
    let (register, is_wide) = match number {
        PRODUCT | REVISION => word(gpu::GPU_ID),
        CORE_GROUPS => pair(gpu::L2_PRESENT_LO),
        TIMESTAMP => pair(gpu::TIMESTAMP_LO),
        _ => shown.map(|it| (it.register, it.wide))?,
    };
    let low = u64::from(read(register));
    let value = match is_wide {
        true => low | u64::from(read(register + 4)) << 32,
        false => low,
    };
    Some(match number {
        PRODUCT => value >> 16,
        REVISION => value & 0xffff,
        CORE_GROUPS => value.count_ones().into(),
        _ => value,
    })
}

/// GPU_ID, from the two parameters.
pub const fn gpu_id(product: u64, revision: u64) -> gpu::GpuId {
    gpu::GpuId((product as u32) << 16 | revision as u32 & 0xffff)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use mali_facts::registers::{Class, all};

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

    fn told(parameter: impl Fn(u32) -> Option<u64>) -> impl Fn(u32) -> Option<u32> {
        let registers: Vec<_> = registers(parameter).collect();
        move |of| {
            let found = registers.iter().find(|(register, _)| *register == of);
            found.map(|(_, value)| *value)
        }
    }

    #[test]
    fn every_register_of_identity_has_a_parameter() {
        let told = told(|number| Some(u64::from(number) << 32 | 0x100 | u64::from(number)));
        assert_eq!(told(gpu::GPU_ID), Some(0x100 << 16 | 0x101));
        assert_eq!(told(gpu::SHADER_PRESENT_HI), Some(2));
        assert_eq!(told(gpu::STACK_PRESENT_HI), Some(5));
        // In the kernel TEXTURE_FEATURES3 is 21, JS_FEATURES15 is 37.
        assert_eq!(told(gpu::TEXTURE_FEATURES_3), Some(0x100 + 21));
        assert_eq!(told(gpu::JS15_FEATURES), Some(0x100 + 37));
        assert_eq!(told(gpu::GPU_CMD), None);
    }

    #[test]
    fn what_the_driver_does_not_tell_is_left_out() {
        let told = told(|number| (number < 39).then_some(1));
        assert_eq!(told(gpu::THREAD_TLS_ALLOC), None);
        assert_eq!(told(gpu::JS0_FEATURES), Some(1));
    }

    #[test]
    fn the_identity_has_two_halves() {
        assert_eq!(gpu_id(0x7212, 0x1_0030).0, 0x7212_0030);
    }
}
