// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers.

/// Which accesses do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Writes are ignored.
    Read,
    /// Reads return 0.
    Write,
    /// Last write, or hardware's update.
    ReadWrite,
}

/// How recorder, compiler, verifier and replay treat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Constant; a replay compares it first.
    Identity,
    /// Differs between runs (counters, flush ids).
    Nondeterministic,
    /// RAWSTAT, CLEAR, MASK, STAT.
    Interrupt,
    /// For the whole GPU (reset, cache clean, counters).
    Command,
    /// A domain's, without PRESENT ([`Class::Identity`]).
    Power,
    /// Set once after reset.
    Quirk,
    /// Performance counters.
    PerformanceCounter,
    /// Read to wait, never compared exactly.
    Status,
    /// Fault status and fault address.
    Fault,
    /// Configuration of a job slot.
    JobSlot,
    /// Starts a job chain.
    Doorbell,
    /// Also commands; holds physical addresses.
    AddressSpace,
}

/// Entry of the register map.
#[derive(Debug, PartialEq, Eq)]
pub struct Register {
    /// Without prefix and index: `GPU_ID`, `HEAD_LO`, `TRANSTAB_LO`.
    pub name: &'static str,
    /// In its block.
    pub offset: u32,
    /// Which accesses do something.
    pub access: Access,
    /// Purpose.
    pub class: Class,
    /// After reset, but of [`Class::Identity`].
    pub reset: u32,
    /// One line of explanation.
    pub doc: &'static str,
}

macro_rules! registers {
    ($($name:ident = $offset:literal, $access:ident, $class:ident, $reset:literal, $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: u32 = $offset;)*

        /// By offset.
        pub const TABLE: &[crate::registers::Register] = &[$(crate::registers::Register {
            name: stringify!($name),
            offset: $offset,
            access: crate::registers::Access::$access,
            class: crate::registers::Class::$class,
            reset: $reset,
            doc: $doc,
        }),*];
    };
}
pub(crate) use registers;

macro_rules! commands {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $command:ident = $number:literal,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$doc])* $command = $number,)*
        }

        impl $name {
            /// Command from a written value.
            pub const fn from_bits(value: u32) -> Option<Self> {
                match value {
                    $($number => Some(Self::$command),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use commands;
