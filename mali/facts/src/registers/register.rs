// SPDX-License-Identifier: MIT OR Apache-2.0
//! A register's description, and how blocks declare registers.

/// Which accesses do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Writes are ignored.
    Read,
    /// Reads return 0.
    Write,
    /// Reads return the last write, or hardware's update.
    ReadWrite,
}

/// Decides how recorder, compiler, verifier and replay treat an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A constant of the GPU. A replay compares it first.
    Identity,
    /// Differs between runs (counters, flush ids); never compared.
    Nondeterministic,
    /// RAWSTAT, CLEAR, MASK or STAT of an interrupt block.
    Interrupt,
    /// Starts an action of the whole GPU (reset, cache clean, counters).
    Command,
    /// Power state of a domain, but PRESENT ([`Class::Identity`]).
    Power,
    /// Chip-specific configuration, set once after reset.
    Quirk,
    /// Performance counters.
    PerformanceCounter,
    /// Progress: read to wait, never compared exactly.
    Status,
    /// Fault status and fault address.
    Fault,
    /// Configuration of a job slot.
    JobSlot,
    /// Writing it starts a job chain.
    Doorbell,
    /// Address space's configuration and commands; holds physical addresses.
    AddressSpace,
}

/// One entry of the register map.
#[derive(Debug, PartialEq, Eq)]
pub struct Register {
    /// Without the block's prefix and index: `GPU_ID`, `HEAD_LO` (of a job slot), `TRANSTAB_LO` (of an address
    /// space).
    pub name: &'static str,
    /// Bytes from the block's start (see [`crate::registers::Block::base`]).
    pub offset: u32,
    /// Which accesses do something.
    pub access: Access,
    /// What it is for.
    pub class: Class,
    /// After reset; [`Class::Identity`] registers have the GPU's own.
    pub reset: u32,
    /// One line of explanation.
    pub doc: &'static str,
}

/// Declares a constant per offset, and the block's table.
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
