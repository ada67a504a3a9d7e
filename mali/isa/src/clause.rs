// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clauses and tuples.

use crate::fau::{Fau, Relative};
use crate::info::{Message, Unit};
use crate::instruction::{Instruction, Source};
use crate::registers::{Destination, RegisterBlock};
use alloc::vec::Vec;

/// Control flow after a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlowControl {
    /// The shader ends, unless a branch is taken.
    End = 0,
    /// Not back to back; reconvergence as in the program counter.
    ReconvergeByPc = 1,
    /// Not back to back; always reconverge.
    Reconverge = 2,
    /// Not back to back; no reconvergence.
    Continue = 3,
    /// Back to back; reconvergence as in the program counter.
    BackToBackByPc = 4,
    /// Back to back.
    BackToBack = 5,
    /// Write elision; reconvergence as in the program counter.
    WriteElisionByPc = 6,
    /// Write elision.
    WriteElision = 7,
}

impl FlowControl {
    /// By number.
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
    /// By number.
    pub const ALL: [FlushToZero; 4] = [
        FlushToZero::None,
        FlushToZero::Dx11,
        FlushToZero::Always,
        FlushToZero::Abrupt,
    ];
}

/// Header of a clause, 45 bits.
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
    /// After the clause.
    pub flow_control: FlowControl,
    /// Terminate discarded threads.
    pub terminate_discarded: bool,
    /// Prefetch the next clause.
    pub next_clause_prefetch: bool,
    /// Wait until earlier messages release the staging registers.
    pub staging_barrier: bool,
    /// First register (0-63) of the message.
    pub staging_register: u8,
    /// Mask of scoreboard slots to wait for before the next clause.
    pub dependency_wait: u8,
    /// Scoreboard slot of the message (0-7).
    pub dependency_slot: u8,
    /// Sent by the clause.
    pub message: Option<Message>,
    /// Of the next clause.
    pub next_message: Option<Message>,
}

impl ClauseHeader {
    /// No waits, no message, numbers unchanged.
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

/// Resolved from selector, read ports and FAU value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// 32-bit register (0-63).
    Register(u8),
    /// In 64-bit tuples: this register is the low word, the next the high word.
    Pair(u8),
    /// Zero.
    Zero,
    /// Result of this tuple's FMA instruction ("t"; only on the ADD unit).
    Stage,
    /// FAU value's low word.
    FauLow(Fau),
    /// FAU value's high word.
    FauHigh(Fau),
    /// All 64 bits (64-bit tuples).
    FauWide(Fau),
    /// Result of the previous FMA instruction (64 bits in 64-bit tuples).
    T0,
    /// Result of the previous ADD instruction.
    T1,
}

impl Operand {
    /// The number, if no thread and no clause address changes it.
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
    /// Its writes belong to the previous tuple; the first block's to the last tuple.
    pub registers: RegisterBlock,
    /// Registers at ports 0, 1 and 2; in 64-bit tuples the lower of each pair.
    pub ports: [Option<u8>; 3],
    /// What the tuple can read.
    pub fau: Fau,
    /// On the FMA unit.
    pub fma: Instruction,
    /// On the ADD unit.
    pub add: Instruction,
    /// Where the FMA result goes.
    pub fma_destination: Option<Destination>,
    /// Where the ADD result goes.
    pub add_destination: Option<Destination>,
}

impl Tuple {
    /// Tuple to encode; encoding takes ports, FAU and destinations from the registers.
    pub const fn new(registers: RegisterBlock, fma: Instruction, add: Instruction) -> Self {
        Self {
            registers,
            ports: [None; 3],
            fau: Fau::Zero,
            fma,
            add,
            fma_destination: None,
            add_destination: None,
        }
    }

    /// Instruction of a unit.
    pub fn instruction(&self, unit: Unit) -> &Instruction {
        match unit {
            Unit::Fma => &self.fma,
            Unit::Add => &self.add,
        }
    }

    /// Where a unit's result goes.
    pub fn destination(&self, unit: Unit) -> Option<Destination> {
        match unit {
            Unit::Fma => self.fma_destination,
            Unit::Add => self.add_destination,
        }
    }

    /// Whether this is one operation on register pairs.
    pub fn is_wide(&self) -> bool {
        self.fma.op.info().wide
    }

    /// What a source reads. `None`: an unused port, never in a decoded clause.
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

    /// Source a first.
    pub fn operands(&self, unit: Unit) -> impl Iterator<Item = Operand> + '_ {
        self.instruction(unit)
            .sources()
            .iter()
            .filter_map(move |source| self.operand(unit, *source))
    }
}

/// One to eight tuples, executed without interruption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Header.
    pub header: ClauseHeader,
    /// In order of execution.
    pub tuples: Vec<Tuple>,
    /// At most seven; FAU indices reach the first six.
    pub constants: Vec<Constant>,
}

/// 60 of 64 bits; the reading tuple supplies bits 0-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Constant {
    /// Bits 0-3 are zero.
    pub value: u64,
    /// Parts relative to the clause's address.
    pub relative: Relative,
}
