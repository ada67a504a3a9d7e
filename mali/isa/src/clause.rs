// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clauses and tuples.

use crate::fau::{Fau, Relative};
use crate::info::{Message, Unit};
use crate::instruction::{Instruction, Source};
use crate::registers::{Destination, RegisterBlock};
use alloc::vec::Vec;

/// What happens to control flow after a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlowControl {
    /// The shader ends here unless a branch is taken.
    End = 0,
    /// Not back to back; reconvergence as encoded in the program counter.
    ReconvergeByPc = 1,
    /// Not back to back; always reconverge.
    Reconverge = 2,
    /// Not back to back; no reconvergence.
    Continue = 3,
    /// Back to back; reconvergence as encoded in the program counter.
    BackToBackByPc = 4,
    /// Back to back.
    BackToBack = 5,
    /// Write elision; reconvergence as encoded in the program counter.
    WriteElisionByPc = 6,
    /// Write elision.
    WriteElision = 7,
}

impl FlowControl {
    /// All values by number.
    pub const ALL: [FlowControl; 8] = [
        FlowControl::End,
        FlowControl::ReconvergeByPc,
        FlowControl::Reconverge,
        FlowControl::Continue,
        FlowControl::BackToBackByPc,
        FlowControl::BackToBack,
        FlowControl::WriteElisionByPc,
        FlowControl::WriteElision,
    ];
}

/// What happens to subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlushToZero {
    /// Kept.
    None = 0,
    /// As DirectX 11 wants it.
    Dx11 = 1,
    /// Operands and results flushed.
    Always = 2,
    /// Results flushed before rounding.
    Abrupt = 3,
}

impl FlushToZero {
    /// All values by number.
    pub const ALL: [FlushToZero; 4] = [
        FlushToZero::None,
        FlushToZero::Dx11,
        FlushToZero::Always,
        FlushToZero::Abrupt,
    ];
}

/// The 45-bit header of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClauseHeader {
    /// Treatment of subnormals.
    pub flush_to_zero: FlushToZero,
    /// Infinite results become the largest finite number.
    pub suppress_infinity: bool,
    /// NaN results become 0.
    pub suppress_nan: bool,
    /// Floating-point exception mode (0-3).
    pub float_exceptions: u8,
    /// What follows the clause.
    pub flow_control: FlowControl,
    /// Terminate threads that were discarded.
    pub terminate_discarded: bool,
    /// Prefetch the next clause.
    pub next_clause_prefetch: bool,
    /// Wait until earlier messages have released the staging registers.
    pub staging_barrier: bool,
    /// First staging register (0-63) of the clause's message.
    pub staging_register: u8,
    /// Scoreboard slots (bit mask) to wait for before the next clause.
    pub dependency_wait: u8,
    /// Scoreboard slot of this clause's message (0-7).
    pub dependency_slot: u8,
    /// The message that the clause sends.
    pub message: Option<Message>,
    /// The message of the next clause.
    pub next_message: Option<Message>,
}

impl ClauseHeader {
    /// The header of a clause that others follow: it waits for nothing, sends no message, and changes no number.
    pub const PLAIN: Self = Self {
        flush_to_zero: FlushToZero::None,
        suppress_infinity: false,
        suppress_nan: false,
        float_exceptions: 0,
        flow_control: FlowControl::Continue,
        terminate_discarded: false,
        next_clause_prefetch: false,
        staging_barrier: false,
        staging_register: 0,
        dependency_wait: 0,
        dependency_slot: 0,
        message: None,
        next_message: None,
    };
}

/// An operand with its selector, read ports and FAU value put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A 32-bit register (0-63).
    Register(u8),
    /// A pair of registers in a 64-bit tuple: the low word is this register, the high word the next.
    Pair(u8),
    /// Zero.
    Zero,
    /// The result of this tuple's FMA instruction ("t"; only on the ADD unit).
    Stage,
    /// The low word of the tuple's FAU value.
    FauLow(Fau),
    /// The high word of the tuple's FAU value.
    FauHigh(Fau),
    /// All 64 bits of the tuple's FAU value (64-bit tuples).
    FauWide(Fau),
    /// The result of the previous tuple's FMA instruction (64 bits in 64-bit tuples).
    T0,
    /// The result of the previous tuple's ADD instruction.
    T1,
}

impl Operand {
    /// The number, for an operand that is the same for every thread and needs no clause address.
    pub fn constant(self) -> Option<u32> {
        let (fau, high) = match self {
            Operand::Zero => return Some(0),
            Operand::FauLow(fau) => (fau, false),
            Operand::FauHigh(fau) => (fau, true),
            _ => return None,
        };
        match fau {
            Fau::Zero => Some(0),
            Fau::Constant {
                value,
                relative: Relative::None,
                ..
            } if high => Some((value >> 32) as u32),
            Fau::Constant {
                value,
                relative: Relative::None | Relative::High,
                ..
            } if !high => Some(value as u32),
            _ => None,
        }
    }
}

/// Two instructions that execute together, FMA first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// The register block as encoded. Its reads belong to this tuple; its writes to the previous one, and those of the
    /// first tuple's block to the last tuple.
    pub registers: RegisterBlock,
    /// Registers read by ports 0, 1 and 2; in 64-bit tuples the lower register of each pair.
    pub ports: [Option<u8>; 3],
    /// The FAU value that the tuple can read.
    pub fau: Fau,
    /// The instruction of the FMA unit.
    pub fma: Instruction,
    /// The instruction of the ADD unit.
    pub add: Instruction,
    /// The register that this tuple's FMA result goes to.
    pub fma_destination: Option<Destination>,
    /// The register that this tuple's ADD result goes to.
    pub add_destination: Option<Destination>,
}

impl Tuple {
    /// The instruction of a unit.
    pub fn instruction(&self, unit: Unit) -> &Instruction {
        match unit {
            Unit::Fma => &self.fma,
            Unit::Add => &self.add,
        }
    }

    /// The register that a unit's result goes to.
    pub fn destination(&self, unit: Unit) -> Option<Destination> {
        match unit {
            Unit::Fma => self.fma_destination,
            Unit::Add => self.add_destination,
        }
    }

    /// Whether this is a 64-bit tuple (one operation on register pairs).
    pub fn is_wide(&self) -> bool {
        self.fma.op.info().wide
    }

    /// What a source of one of this tuple's instructions reads, or `None` for a port that reads no register.
    /// A decoded clause never has that.
    pub fn operand(&self, unit: Unit, source: Source) -> Option<Operand> {
        let wide = self.is_wide();
        let port = |n: usize| {
            self.ports[n].map(if wide {
                Operand::Pair
            } else {
                Operand::Register
            })
        };
        Some(match source {
            Source::Port0 => return port(0),
            Source::Port1 => return port(1),
            Source::Port2 => return port(2),
            Source::Stage if unit == Unit::Fma => Operand::Zero,
            Source::Stage => Operand::Stage,
            Source::FauLow if wide => Operand::FauWide(self.fau),
            Source::FauLow => Operand::FauLow(self.fau),
            Source::FauHigh => Operand::FauHigh(self.fau),
            Source::T0 => Operand::T0,
            Source::T1 => Operand::T1,
        })
    }

    /// The operands of a unit's instruction, source a first.
    pub fn operands(&self, unit: Unit) -> impl Iterator<Item = Operand> + '_ {
        self.instruction(unit)
            .sources()
            .iter()
            .filter_map(move |source| self.operand(unit, *source))
    }
}

/// A clause: one to eight tuples with embedded constants, executed without interruption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// The header.
    pub header: ClauseHeader,
    /// The tuples in order of execution.
    pub tuples: Vec<Tuple>,
    /// The embedded constants: at most seven, of which FAU indices reach the first six.
    pub constants: Vec<Constant>,
}

/// A constant as a clause embeds it: 60 of 64 bits; the tuple that reads it supplies bits 0-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Constant {
    /// Bits 4-63 of the value; bits 0-3 are zero.
    pub value: u64,
    /// Which parts are relative to the clause's address.
    pub relative: Relative,
}
