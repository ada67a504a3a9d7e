// SPDX-License-Identifier: MIT OR Apache-2.0
//! One register's description, and how a block's registers are declared.

/// Which accesses do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads return a value, writes are ignored.
    Read,
    /// Writes act, reads return 0.
    Write,
    /// Reads return what was written last, or a value the hardware updates.
    ReadWrite,
}

/// What a register is for; decides how recorder, compiler, verifier and replay treat an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A constant of the GPU. A replay compares it before anything else.
    Identity,
    /// Differs from run to run (counters, flush ids); never compared.
    Nondeterministic,
    /// RAWSTAT, CLEAR, MASK or STAT of an interrupt block.
    Interrupt,
    /// Starts an action of the whole GPU (reset, cache clean, counters).
    Command,
    /// Power state of a domain: PRESENT is [`Class::Identity`], the rest is here.
    Power,
    /// Chip-specific configuration a driver sets once after reset.
    Quirk,
    /// Performance counters.
    PerformanceCounter,
    /// Progress of something that runs: read to wait, never compared exactly.
    Status,
    /// What went wrong: fault status and fault address.
    Fault,
    /// Configuration of a job slot.
    JobSlot,
    /// Writing it starts a job chain.
    Doorbell,
    /// Configuration and commands of an address space; holds physical addresses.
    AddressSpace,
}

/// One entry of the register map.
#[derive(Debug, PartialEq, Eq)]
pub struct Register {
    /// Name without the block's prefix and index: `GPU_ID`, `HEAD_LO` (of a job slot), `TRANSTAB_LO` (of an
    /// address space).
    pub name: &'static str,
    /// Bytes from the start of the block (see [`crate::registers::Block::base`]).
    pub offset: u32,
    /// Which accesses do something.
    pub access: Access,
    /// What it is for.
    pub class: Class,
    /// Value after reset, except for [`Class::Identity`] registers, whose value is the GPU's own.
    pub reset: u32,
    /// One line of explanation.
    pub doc: &'static str,
}

/// Declares the registers of one block: a constant for each offset, and the block's table.
macro_rules! registers {
    ($($name:ident = $offset:literal, $access:ident, $class:ident, $reset:literal, $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: u32 = $offset;)*

        /// The registers of this block, by offset.
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
