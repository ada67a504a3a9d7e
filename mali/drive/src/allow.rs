// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers and values that a recording may touch.
//!
//! Only chip-specific bits that drivers set after reset on that GPU, and reads of constants: reset, power, address
//! spaces, job slots and interrupt masks are the engine's. Computed at compile time, without names and explanations
//! in the binary.

use mali_facts::registers::Class;
use mali_facts::registers::gpu::{JM_CONFIG, L2_MMU_CONFIG, SHADER_CONFIG, TABLE, TILER_CONFIG};

/// Bits of products: four per version from 6, by the product's low two bits.
const G71: u16 = 1 << 0;
const G72: u16 = 1 << 1;
const G51: u16 = 1 << 4;
const G76: u16 = 1 << 5;
const G52: u16 = 1 << 6;
const G31: u16 = 1 << 7;
const G57: u16 = 1 << 13 | 1 << 15;

/// L2_MMU_CONFIG_ALLOW_SNOOP_DISPARITY, with ACE coherency.
const SNOOP_DISPARITY: u32 = 1 << 23;
/// Limits of bus reads (25:24) and writes (27:26).
const LIMITS: u32 = 0xf << 24;
/// The same limits in 14:12 and 17:15.
const WIDE_LIMITS: u32 = 0x3f << 12;

/// Bits to set on some products; one entry per product and register.
struct Setting {
    register: u16,
    products: u16,
    bits: u32,
}

const fn setting(register: u32, products: u16, bits: u32) -> Setting {
    Setting {
        register: register as u16,
        products,
        bits,
    }
}

/// From Linux's panfrost (panfrost_gpu.c, panfrost_features.h, panfrost_regs.h of Linux 6.12) and Arm's kbase
/// (mali_kbase_pm_driver.c, mali_base_hwconfig_features.h; r15p0 for limits of L2_MMU_CONFIG, else r37p0). Left out:
/// JM_CONFIG's other bits (Midgard's clocks, throttling), PWR_OVERRIDE1 (core stacks' power, the engine's), vendors'
/// device trees.
static SETTINGS: [Setting; 8] = [
    // JM_FORCE_COHERENCY_FEATURES: the G71 misreports them.
    setting(JM_CONFIG, G71, 0xc),
    // IDVS_GROUP_SIZE, six bits: HW_FEATURE_IDVS_GROUP_SIZE.
    setting(JM_CONFIG, G76 | G52 | G57, 0x3f << 16),
    // SC_TLS_HASH_ENABLE: HW_FEATURE_TLS_HASHING; G52 by kbase only, G31 by panfrost only.
    setting(SHADER_CONFIG, G76 | G52 | G31, 1 << 17),
    // SC_VAR_ALGORITHM: HW_ISSUE_TTRX_2968_TTRX_3162.
    setting(SHADER_CONFIG, G57, 1 << 29),
    // TC_CLOCK_GATE_OVERRIDE: HW_ISSUE_T76X_3953 of the G71 r0p0 05dev0.
    setting(TILER_CONFIG, G71, 1),
    setting(L2_MMU_CONFIG, G71 | G72 | G51, SNOOP_DISPARITY | LIMITS),
    // HW_FEATURE_3BIT_EXT_RW_L2_MMU_CONFIG: G31 has it by panfrost, not by kbase.
    setting(L2_MMU_CONFIG, G76 | G52, SNOOP_DISPARITY | WIDE_LIMITS),
    setting(L2_MMU_CONFIG, G31, SNOOP_DISPARITY | LIMITS | WIDE_LIMITS),
];

/// A bit per word of the GPU control block's first KiB, with all but core stacks.
struct Registers([u32; 8]);

impl Registers {
    const fn of_class(wanted: Class) -> Self {
        let mut bits = [0u32; 8];
        let mut entry = 0;
        while entry < TABLE.len() {
            let register = &TABLE[entry];
            let word = register.offset / 4;
            if register.class as u8 == wanted as u8 && word < 256 {
                bits[word as usize / 32] |= 1 << (word % 32);
            }
            entry += 1;
        }
        Self(bits)
    }

    fn contains(&self, register: u32) -> bool {
        let word = register / 4;
        register.is_multiple_of(4)
            && self
                .0
                .get(word as usize / 32)
                .is_some_and(|bits| bits >> (word % 32) & 1 != 0)
    }
}

static IDENTITY: Registers = Registers::of_class(Class::Identity);
pub(super) fn identity(register: u32) -> bool {
    IDENTITY.contains(register)
}

/// Whether a recording may write this; on unknown GPUs only zero settings.
pub fn writable(gpu_id: u32, register: u32, value: u32) -> bool {
    // Versions 6 to 9, products 0 to 3.
    let from_6 = (gpu_id >> 16).wrapping_sub(0x6000);
    let product = if from_6 & 0xc00c == 0 {
        from_6 & 3 | from_6 >> 10 & 0xc
    } else {
        16
    };
    SETTINGS.iter().any(|setting| {
        let bits = if u32::from(setting.products) >> product & 1 != 0 {
            setting.bits
        } else {
            0
        };
        u32::from(setting.register) == register && value & !bits == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mali_facts::registers::{all, gpu};

    /// With garbage in other fields.
    fn chip(product: u32) -> u32 {
        product << 16 | 0x0210_1005
    }

    #[test]
    fn only_settings_are_writable() {
        for located in all() {
            let offset = located.offset();
            if [0x6000, 0x6001, 0x7002]
                .iter()
                .any(|&product| writable(chip(product), offset, 0))
            {
                assert_eq!(located.class(), Class::Quirk, "{located}");
            }
            if identity(offset) {
                assert_eq!(located.class(), Class::Identity, "{located}");
            }
        }
        assert!(!writable(chip(0x7002), gpu::GPU_CMD, 0));
        assert!(!writable(chip(0x7002), gpu::JM_CONFIG + 1, 0));
        assert!(!writable(chip(0x7002), gpu::PWR_OVERRIDE1, 0));
    }

    #[test]
    fn each_gpu_has_its_own_bits() {
        // By product: JM_CONFIG, SHADER_CONFIG, TILER_CONFIG, L2_MMU_CONFIG.
        let expected = [
            (0x6000, [0xc, 0, 1, 0x0f80_0000]),
            (0x6001, [0, 0, 0, 0x0f80_0000]),
            (0x7000, [0, 0, 0, 0x0f80_0000]),
            (0x7001, [0x3f_0000, 0x2_0000, 0, 0x0083_f000]),
            (0x7002, [0x3f_0000, 0x2_0000, 0, 0x0083_f000]),
            (0x7003, [0, 0x2_0000, 0, 0x0f83_f000]),
            (0x9001, [0x3f_0000, 0x2000_0000, 0, 0]),
            (0x9003, [0x3f_0000, 0x2000_0000, 0, 0]),
            // Unknown, other Valhall, Midgard.
            (0x7004, [0, 0, 0, 0]),
            (0x6009, [0, 0, 0, 0]),
            (0x8000, [0, 0, 0, 0]),
            (0x9000, [0, 0, 0, 0]),
            (0x9002, [0, 0, 0, 0]),
            (0x9007, [0, 0, 0, 0]),
            (0xa003, [0, 0, 0, 0]),
            (0x5003, [0, 0, 0, 0]),
            (0x0860, [0, 0, 0, 0]),
        ];
        for (product, bits) in expected {
            for (register, bits) in (gpu::JM_CONFIG..).step_by(4).zip(bits) {
                let id = chip(product);
                assert!(writable(id, register, 0) && writable(id, register, bits));
                for bit in 0..32 {
                    let found = writable(id, register, 1 << bit);
                    assert_eq!(
                        found,
                        bits >> bit & 1 != 0,
                        "{product:#x} {register:#x} bit {bit}"
                    );
                }
            }
        }
    }

    #[test]
    fn sets_follow_the_table() {
        assert!(identity(gpu::GPU_ID) && identity(gpu::THREAD_TLS_ALLOC));
        assert!(!identity(gpu::LATEST_FLUSH_ID) && !identity(gpu::GPU_ID + 2));
        assert!(!identity(gpu::L2_READY_LO) && !identity(0x2400) && !identity(0xffff_fffc));
    }
}
