// SPDX-License-Identifier: MIT OR Apache-2.0
//! What registers are for.

use mali_facts::registers::{Class, all, lookup};

fn class(register: u32) -> Option<Class> {
    lookup(register).map(|found| found.class())
}

/// Drivers set it once after a reset.
pub fn is_setting(register: u32) -> bool {
    class(register) == Some(Class::Quirk)
}

/// It reads the same on two devices after the same work: no constant, no counter, nothing that still moves.
pub fn follows_work(register: u32) -> bool {
    matches!(class(register), Some(Class::Status | Class::Interrupt))
}

/// Offsets of constant registers.
pub fn identity() -> impl Iterator<Item = u32> {
    let constants = all().filter(|register| register.class() == Class::Identity);
    constants.map(|register| register.offset())
}
