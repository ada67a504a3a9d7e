// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU properties of kbase, Arm's driver (`KBASE_GPUPROP_*`), and registers.
//!
//! Four bytes (number; length code in the lowest two bits), then the value. AFBC_FEATURES and COHERENCY_FEATURES
//! are missing.

use mali_facts::registers::gpu;

pub mod request;

/// Of GPU and processor caches; [`NOT_COHERENT`]: none.
pub const COHERENCY: u32 = 60;
/// [`COHERENCY`]: clean the processor's caches.
pub const NOT_COHERENT: u64 = 31;

const JOB_SLOT_FEATURES: u32 = 35;
const JOB_SLOTS: u32 = 16;

/// Property, register, whether the next is the high word.
static SHOWN: [(u32, u32, bool); 22] = [
    (25, gpu::SHADER_PRESENT_LO, true),
    (26, gpu::TILER_PRESENT_LO, true),
    (27, gpu::L2_PRESENT_LO, true),
    (28, gpu::STACK_PRESENT_LO, true),
    (29, gpu::L2_FEATURES, false),
    (30, gpu::CORE_FEATURES, false),
    (31, gpu::MEM_FEATURES, false),
    (32, gpu::MMU_FEATURES, false),
    (33, gpu::AS_PRESENT, false),
    (34, gpu::JS_PRESENT, false),
    (51, gpu::TILER_FEATURES, false),
    (52, gpu::TEXTURE_FEATURES_0, false),
    (53, gpu::TEXTURE_FEATURES_1, false),
    (54, gpu::TEXTURE_FEATURES_2, false),
    (55, gpu::GPU_ID, false),
    (56, gpu::THREAD_MAX_THREADS, false),
    (57, gpu::THREAD_MAX_WORKGROUP_SIZE, false),
    (58, gpu::THREAD_MAX_BARRIER_SIZE, false),
    (59, gpu::THREAD_FEATURES, false),
    (81, gpu::TEXTURE_FEATURES_3, false),
    (83, gpu::THREAD_TLS_ALLOC, false),
    (JOB_SLOT_FEATURES, gpu::JS0_FEATURES, false),
];

/// Number and value.
pub type Property = (u32, u64);

/// Up to the first one cut off.
pub fn properties(mut buffer: &[u8]) -> impl Iterator<Item = Property> {
    core::iter::from_fn(move || {
        let (head, rest) = buffer.split_first_chunk::<4>()?;
        let head = u32::from_le_bytes(*head);
        let (value, rest) = rest.split_at_checked(1 << (head & 3))?;
        let mut bytes = [0; 8];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        buffer = rest;
        Some((head >> 2, u64::from_le_bytes(bytes)))
    })
}

/// Offsets and values.
pub fn registers((number, value): Property) -> impl Iterator<Item = (u32, u32)> {
    let slot = number.wrapping_sub(JOB_SLOT_FEATURES);
    let shown = match slot < JOB_SLOTS {
        true => Some((gpu::JS0_FEATURES + 4 * slot, false)),
        false => {
            let found = SHOWN.iter().find(|(shown, ..)| *shown == number);
            found.map(|(_, register, wide)| (*register, *wide))
        }
    };
    let low = shown.map(|(register, _)| (register, value as u32));
    let high = shown.filter(|(_, wide)| *wide);
    low.into_iter()
        .chain(high.map(|(register, _)| (register + 4, (value >> 32) as u32)))
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use mali_facts::registers::{Class, all};

    #[test]
    fn every_register_of_identity_but_two_is_told_once() {
        let told = (0..=200).flat_map(|number| registers((number, 0)));
        let mut told: Vec<u32> = told.map(|(register, _)| register).collect();
        told.sort_unstable();
        let before = told.len();
        told.dedup();
        assert_eq!(told.len(), before);
        let identity = all().filter(|it| it.class() == Class::Identity && it.offset() < 0x1000);
        let missing = identity.filter(|it| !told.contains(&it.offset()));
        let missing: Vec<u32> = missing.map(|it| it.offset()).collect();
        assert_eq!(missing, [gpu::AFBC_FEATURES, gpu::COHERENCY_FEATURES]);
    }

    #[test]
    fn values_have_one_to_eight_bytes() {
        // 25 in eight bytes, 21 in one, 30 in two, 55 in four, cut off.
        let buffer = [
            &[25 << 2 | 3, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0][..],
            &[21 << 2, 0, 0, 0, 5],
            &[30 << 2 | 1, 0, 0, 0, 2, 1],
            &[55 << 2 | 2, 0, 0, 0, 1, 0, 0x12, 0x72],
            &[56 << 2 | 2, 0, 0, 0, 1, 0, 0],
        ]
        .concat();
        let found: Vec<Property> = properties(&buffer).collect();
        assert_eq!(
            found,
            [(25, 7 | 9 << 32), (21, 5), (30, 0x102), (55, 0x7212_0001)]
        );
        let registers: Vec<_> = found.into_iter().flat_map(registers).collect();
        assert_eq!(
            registers,
            [
                (gpu::SHADER_PRESENT_LO, 7),
                (gpu::SHADER_PRESENT_HI, 9),
                (gpu::CORE_FEATURES, 0x102),
                (gpu::GPU_ID, 0x7212_0001)
            ]
        );
        assert_eq!(
            properties(&[]).count() + properties(&buffer[..3]).count(),
            0
        );
    }
}
