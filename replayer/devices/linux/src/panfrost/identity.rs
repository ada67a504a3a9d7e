// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that say which GPU it is, from the driver's parameters. The numbers are `enum drm_panfrost_param` of `panfrost_drm.h`.

use std::collections::BTreeMap;

use mali_facts::registers::gpu::{
    AFBC_FEATURES, AS_PRESENT, COHERENCY_FEATURES, CORE_FEATURES, GPU_ID, JS_PRESENT, JS0_FEATURES,
    L2_FEATURES, L2_PRESENT_LO, MEM_FEATURES, MMU_FEATURES, SHADER_PRESENT_LO, STACK_PRESENT_LO,
    TEXTURE_FEATURES_0, THREAD_FEATURES, THREAD_MAX_BARRIER_SIZE, THREAD_MAX_THREADS,
    THREAD_MAX_WORKGROUP_SIZE, THREAD_TLS_ALLOC, TILER_FEATURES, TILER_PRESENT_LO,
};

/// Product and revision are one register.
const PRODUCT: u32 = 0;
const REVISION: u32 = 1;
/// Parameters of two registers, the second of which is the high word.
const PAIRS: [(u32, u32); 4] = [
    (2, SHADER_PRESENT_LO),
    (3, TILER_PRESENT_LO),
    (4, L2_PRESENT_LO),
    (5, STACK_PRESENT_LO),
];
/// Parameters of one register.
const WORDS: [(u32, u32); 14] = [
    (6, AS_PRESENT),
    (7, JS_PRESENT),
    (8, L2_FEATURES),
    (9, CORE_FEATURES),
    (10, TILER_FEATURES),
    (11, MEM_FEATURES),
    (12, MMU_FEATURES),
    (13, THREAD_FEATURES),
    (14, THREAD_MAX_THREADS),
    (15, THREAD_MAX_WORKGROUP_SIZE),
    (16, THREAD_MAX_BARRIER_SIZE),
    (17, COHERENCY_FEATURES),
    (39, THREAD_TLS_ALLOC),
    (40, AFBC_FEATURES),
];
/// Parameters of several registers that follow each other: the first, its register, how many.
const ROWS: [(u32, u32, u32); 2] = [(18, TEXTURE_FEATURES_0, 4), (22, JS0_FEATURES, 16)];

/// Values of registers that are constants of the GPU, by their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity(BTreeMap<u32, u32>);

impl Identity {
    /// Asks for all parameters. What the driver does not have is left out.
    pub(crate) fn read(parameter: impl Fn(u32) -> Option<u64>) -> Self {
        let mut values = BTreeMap::new();
        if let (Some(product), Some(revision)) = (parameter(PRODUCT), parameter(REVISION)) {
            values.insert(GPU_ID, (product as u32) << 16 | revision as u32 & 0xffff);
        }
        for (number, register) in PAIRS {
            if let Some(value) = parameter(number) {
                values.extend([
                    (register, value as u32),
                    (register + 4, (value >> 32) as u32),
                ]);
            }
        }
        let rows = ROWS.iter().flat_map(|&(number, register, count)| {
            (0..count).map(move |index| (number + index, register + 4 * index))
        });
        for (number, register) in WORDS.into_iter().chain(rows) {
            if let Some(value) = parameter(number) {
                values.insert(register, value as u32);
            }
        }
        Self(values)
    }

    /// The value of a register, 0 for one that the driver does not tell.
    pub(crate) fn register(&self, offset: u32) -> u32 {
        self.0.get(&offset).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use mali_facts::registers::gpu::{self, JS15_FEATURES, TEXTURE_FEATURES_3};
    use mali_facts::registers::{Class, all};

    use super::*;

    #[test]
    fn every_register_of_identity_has_a_parameter() {
        // A value that says which parameter it was.
        let identity =
            Identity::read(|number| Some(u64::from(number) << 32 | 0x100 | u64::from(number)));
        let registers = all().filter(|located| located.class() == Class::Identity);
        for located in registers.filter(|located| located.offset() < 0x1000) {
            assert_ne!(identity.register(located.offset()), 0, "{located}");
        }
        assert_eq!(identity.register(GPU_ID), 0x100 << 16 | 0x101);
        assert_eq!(identity.register(gpu::SHADER_PRESENT_HI), 2);
        assert_eq!(identity.register(gpu::STACK_PRESENT_HI), 5);
        // The kernel's names: TEXTURE_FEATURES3 is 21, JS_FEATURES15 is 37.
        assert_eq!(identity.register(TEXTURE_FEATURES_3), 0x100 + 21);
        assert_eq!(identity.register(JS15_FEATURES), 0x100 + 37);
        assert_eq!(identity.register(gpu::GPU_CMD), 0);
    }

    #[test]
    fn what_the_driver_does_not_tell_is_zero() {
        let identity = Identity::read(|number| (number < 39).then_some(1));
        assert_eq!(identity.register(THREAD_TLS_ALLOC), 0);
        assert_eq!(identity.register(JS0_FEATURES), 1);
    }
}
