// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction word.

use crate::valhall::field::{BRANCH_OFFSET, EQ, Field};
use crate::valhall::row::Row;
use crate::valhall::source::{Code, Operand};
use crate::valhall::table::Op;
use crate::valhall::values;

/// Word that the table knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    op: Op,
    word: u64,
}

impl Instruction {
    /// `None` for an unknown word.
    pub fn decode(word: u64) -> Option<Instruction> {
        Op::of(word).map(|op| Instruction { op, word })
    }

    /// Operation.
    pub fn op(self) -> Op {
        self.op
    }

    /// Encoded word.
    pub fn word(self) -> u64 {
        self.word
    }

    /// Table row.
    pub fn row(self) -> &'static Row {
        self.op.row()
    }

    /// What happens after it.
    pub fn flow(self) -> Flow {
        Flow((self.word >> 59 & 15) as u8)
    }

    /// Set bits without a meaning.
    pub fn unexplained(self) -> u64 {
        self.word & !self.row().explained()
    }

    /// Source in that byte.
    pub fn source(self, byte: usize) -> Option<Operand> {
        self.row().sources.get(byte)?.read(byte, self.word)
    }

    /// Sources from the lowest byte.
    pub fn sources(self) -> impl Iterator<Item = Operand> {
        let sources = self.row().sources.iter().enumerate();
        sources.filter_map(move |(byte, kind)| kind.read(byte, self.word))
    }

    /// Destination, if it has one.
    pub fn destination(self) -> Option<Destination> {
        let has_one = self.row().registers == crate::valhall::Registers::Dest;
        has_one.then_some(Destination {
            register: (self.word >> 40 & 63) as u8,
            low: self.word >> 46 & 1 == 1,
            high: self.word >> 47 & 1 == 1,
        })
    }

    /// Message registers, in the text's order.
    pub fn staging(self) -> impl Iterator<Item = Staging> {
        let groups = self.row().registers.groups().iter();
        groups.map(move |group| Staging {
            first: (self.word >> group.at & 63) as u8,
            count: (self.word >> group.count_at & 7) as u8 + group.bias,
            written: group.written,
        })
    }

    /// `None` without such a field.
    pub fn value(self, field: &'static Field) -> Option<i64> {
        let row = self.row();
        let mut fields = row.modifiers.iter().chain(row.immediates);
        fields
            .find(|it| **it == field)
            .map(|it| it.number(self.word))
    }

    /// `None` if absent or reserved.
    pub fn named(self, field: &'static Field) -> Option<&'static str> {
        self.value(field)?;
        field.name_in(self.word)
    }

    /// In words from itself; `None` without a constant target.
    pub fn branch(self) -> Option<i64> {
        Some(self.value(&BRANCH_OFFSET)?.saturating_add(1))
    }

    /// Whether a block ends here: at a branch, a barrier or an end.
    pub fn ends_block(self) -> bool {
        matches!(self.op, Op::Branchz | Op::Branchzi | Op::Barrier) || self.flow().ends()
    }

    /// Whether control never goes on after it.
    pub fn leaves(self) -> bool {
        let zero = self.source(0).and_then(|source| source.code.constant()) == Some(0);
        let jumps = self.op == Op::Branchz && self.value(&EQ) == Some(1) && zero;
        self.flow().ends() || jumps
    }
}

/// Destination register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Below 64.
    pub register: u8,
    /// Low half written.
    pub low: bool,
    /// High half written.
    pub high: bool,
}

/// Consecutive registers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staging {
    /// Lowest register.
    pub first: u8,
    /// Registers.
    pub count: u8,
    /// Otherwise read.
    pub written: bool,
}

/// What happens after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow(u8);

impl Flow {
    /// Awaited slots, a bit each.
    pub fn waits(self) -> u8 {
        match self.0 {
            slots @ 1..=7 => slots,
            8 => 0b0100_0111,
            9 => 0xff,
            _ => 0,
        }
    }

    /// Whether lanes come together again.
    pub fn reconverges(self) -> bool {
        self.0 == 10
    }

    /// Whether the shader ends.
    pub fn ends(self) -> bool {
        self.0 == 15
    }

    /// Name like `wait0`; `None` if reserved.
    pub fn name(self) -> Option<&'static str> {
        values::FLOW.name(self.0.into())
    }
}

impl Code {
    /// Register, if it is one.
    pub fn register(self) -> Option<u8> {
        match self {
            Code::Register { index, .. } => Some(index),
            _ => None,
        }
    }
}
