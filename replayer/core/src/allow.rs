// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which registers a recording may touch, and with which values.
//!
//! Reset, power, address spaces, job slots and interrupt masks belong to the engine; a recording can touch none of
//! them. What remains are the chip-specific settings that a driver makes once after reset, limited to the bits that
//! drivers set on purpose, and reads. The sets are computed from the register map at compile time; its
//! names and explanations stay out of the binary.

use mali_regs::gpu::{JM_CONFIG, L2_MMU_CONFIG, SHADER_CONFIG, TABLE, TILER_CONFIG};
use mali_regs::{Access, Class};

/// Registers that set-up may write, and the bits that may be set.
///
/// Bits as Linux's panfrost and Arm's driver use them. JM_CONFIG: timestamp and clock overrides (2:0), coherency (5:4 on
/// G71), IDVS group size (19:16), job manager and idle throttling. SHADER_CONFIG, TILER_CONFIG and
/// L2_MMU_CONFIG hold chicken bits and bus throttling only.
const WRITABLE: [(u32, u32); 4] = [
    (JM_CONFIG, 0x003f_ffff),
    (SHADER_CONFIG, u32::MAX),
    (TILER_CONFIG, u32::MAX),
    (L2_MMU_CONFIG, 0x7fff_ffff),
];

/// A set of registers of the first KiB of the GPU control block, where all but the core stacks are; one bit per word.
struct Registers([u32; 8]);

impl Registers {
    const fn of_class(wanted: &[Class]) -> Self {
        let mut bits = [0u32; 8];
        let mut entry = 0;
        while entry < TABLE.len() {
            let register = &TABLE[entry];
            let mut class = 0;
            while class < wanted.len() {
                if register.class as u8 == wanted[class] as u8
                    && register.access as u8 != Access::Write as u8
                {
                    let word = register.offset / 4;
                    if word < 256 {
                        bits[word as usize / 32] |= 1 << (word % 32);
                    }
                }
                class += 1;
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

static IDENTITY: Registers = Registers::of_class(&[Class::Identity]);
static READABLE: Registers = Registers::of_class(&[
    Class::Identity,
    Class::Power,
    Class::Status,
    Class::Quirk,
    Class::Interrupt,
]);

/// Whether an identity check may read this register: a constant of the GPU.
pub(crate) fn identity(register: u32) -> bool {
    IDENTITY.contains(register)
}

/// Whether a recording may poll or expect this register: reading it has no effect.
pub(crate) fn readable(register: u32) -> bool {
    READABLE.contains(register)
}

/// The bits of a register that a recording may set; `None` when it may not write the register at all.
pub(crate) fn writable(register: u32) -> Option<u32> {
    WRITABLE
        .iter()
        .find(|entry| entry.0 == register)
        .map(|entry| entry.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mali_regs::{all, gpu};

    #[test]
    fn only_settings_are_writable() {
        for located in all() {
            if writable(located.offset()).is_some() {
                assert_eq!(located.class(), Class::Quirk, "{located}");
            }
            if identity(located.offset()) {
                assert_eq!(located.class(), Class::Identity, "{located}");
            }
        }
        assert_eq!(writable(gpu::GPU_CMD), None);
        assert_eq!(writable(gpu::JM_CONFIG + 1), None);
    }

    #[test]
    fn sets_follow_the_table() {
        assert!(identity(gpu::GPU_ID) && identity(gpu::THREAD_TLS_ALLOC));
        assert!(!identity(gpu::LATEST_FLUSH_ID) && !identity(gpu::GPU_ID + 2));
        assert!(readable(gpu::L2_READY_LO) && !readable(gpu::L2_PWRON_LO));
        assert!(!readable(0x2400) && !readable(0xffff_fffc));
    }
}
