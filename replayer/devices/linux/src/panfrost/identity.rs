// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identity registers, from the driver's parameters.

use std::collections::BTreeMap;

use mali_facts::panfrost::parameter::{PRODUCT, REVISION, gpu_id, shown};
use mali_facts::registers::gpu::GPU_ID;

/// Constant registers by offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity(BTreeMap<u32, u32>);

impl Identity {
    pub(crate) fn read(parameter: impl Fn(u32) -> Option<u64>) -> Self {
        let mut values = BTreeMap::new();
        if let (Some(product), Some(revision)) = (parameter(PRODUCT), parameter(REVISION)) {
            values.insert(GPU_ID, gpu_id(product, revision).0);
        }
        for shown in shown() {
            if let Some(value) = parameter(shown.number) {
                values.insert(shown.register, value as u32);
                if shown.wide {
                    values.insert(shown.register + 4, (value >> 32) as u32);
                }
            }
        }
        Self(values)
    }

    /// 0 if the driver does not tell it.
    pub(crate) fn register(&self, offset: u32) -> u32 {
        self.0.get(&offset).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use mali_facts::registers::gpu::{
        self, JS0_FEATURES, JS15_FEATURES, TEXTURE_FEATURES_3, THREAD_TLS_ALLOC,
    };
    use mali_facts::registers::{Class, all};

    use super::*;

    #[test]
    fn every_register_of_identity_has_a_parameter() {
        let identity =
            Identity::read(|number| Some(u64::from(number) << 32 | 0x100 | u64::from(number)));
        let registers = all().filter(|located| located.class() == Class::Identity);
        for located in registers.filter(|located| located.offset() < 0x1000) {
            assert_ne!(identity.register(located.offset()), 0, "{located}");
        }
        assert_eq!(identity.register(GPU_ID), 0x100 << 16 | 0x101);
        assert_eq!(identity.register(gpu::SHADER_PRESENT_HI), 2);
        assert_eq!(identity.register(gpu::STACK_PRESENT_HI), 5);
        // In the kernel TEXTURE_FEATURES3 is 21, JS_FEATURES15 is 37.
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
