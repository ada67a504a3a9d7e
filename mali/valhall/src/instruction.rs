// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instruction word, taken apart.

use crate::field::{BRANCH_OFFSET, EQ, Field};
use crate::row::Row;
use crate::source::{Code, Operand};
use crate::table::Op;
use crate::values;

/// A word that the table knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    op: Op,
    word: u64,
}

impl Instruction {
    /// The instruction of a word; nothing if there is none.
    pub fn decode(word: u64) -> Option<Instruction> {
        Op::of(word).map(|op| Instruction { op, word })
    }

    /// Which instruction it is.
    pub fn op(self) -> Op {
        self.op
    }

    /// The word.
    pub fn word(self) -> u64 {
        self.word
    }

    /// Its row of the table.
    pub fn row(self) -> &'static Row {
        self.op.row()
    }

    /// What happens behind it.
    pub fn flow(self) -> Flow {
        Flow((self.word >> 59 & 15) as u8)
    }

    /// Bits that are set although the table has no meaning for them.
    pub fn unexplained(self) -> u64 {
        self.word & !self.row().explained()
    }

    /// The source in that byte.
    pub fn source(self, byte: usize) -> Option<Operand> {
        self.row().sources.get(byte)?.read(byte, self.word)
    }

    /// The sources, from the lowest byte.
    pub fn sources(self) -> impl Iterator<Item = Operand> {
        let sources = self.row().sources.iter().enumerate();
        sources.filter_map(move |(byte, kind)| kind.read(byte, self.word))
    }

    /// The destination, where it has one.
    pub fn destination(self) -> Option<Destination> {
        let has_one = self.row().registers == crate::Registers::Dest;
        has_one.then_some(Destination {
            register: (self.word >> 40 & 63) as u8,
            low: self.word >> 46 & 1 == 1,
            high: self.word >> 47 & 1 == 1,
        })
    }

    /// The groups of registers that a message reads or writes, in the order of the text.
    pub fn staging(self) -> impl Iterator<Item = Staging> {
        let groups = self.row().registers.groups().iter();
        groups.map(move |group| Staging {
            first: (self.word >> group.at & 63) as u8,
            count: (self.word >> group.count_at & 7) as u8 + group.bias,
            written: group.written,
        })
    }

    /// The value of a modifier or an immediate; nothing if it has no such field.
    pub fn value(self, field: &'static Field) -> Option<i64> {
        let row = self.row();
        let mut fields = row.modifiers.iter().chain(row.immediates);
        fields
            .find(|it| **it == field)
            .map(|it| it.number(self.word))
    }

    /// The name of a modifier's value; nothing if it has none, or a reserved one.
    pub fn named(self, field: &'static Field) -> Option<&'static str> {
        self.value(field)?;
        field.name_in(self.word)
    }

    /// Where it branches to, in words behind itself; nothing if it does not, or if a register says where.
    pub fn branch(self) -> Option<i64> {
        Some(self.value(&BRANCH_OFFSET)?.saturating_add(1))
    }

    /// Whether a block ends behind it: a branch, a barrier, an end.
    pub fn ends_block(self) -> bool {
        matches!(self.op, Op::Branchz | Op::Branchzi | Op::Barrier) || self.flow().ends()
    }

    /// Whether control never goes on behind it.
    pub fn leaves(self) -> bool {
        let zero = self.source(0).and_then(|source| source.code.constant()) == Some(0);
        let jumps = self.op == Op::Branchz && self.value(&EQ) == Some(1) && zero;
        self.flow().ends() || jumps
    }
}

/// A destination register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Its number.
    pub register: u8,
    /// The low half is written.
    pub low: bool,
    /// The high half is written.
    pub high: bool,
}

/// A group of consecutive registers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staging {
    /// The first register.
    pub first: u8,
    /// How many there are.
    pub count: u8,
    /// Whether the message writes them; else it reads them.
    pub written: bool,
}

/// What happens behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow(u8);

impl Flow {
    /// The slots that are waited for, a bit each.
    pub fn waits(self) -> u8 {
        match self.0 {
            slots @ 1..=7 => slots,
            8 => 0b0100_0111,
            9 => 0xff,
            _ => 0,
        }
    }

    /// Whether the lanes come together again.
    pub fn reconverges(self) -> bool {
        self.0 == 10
    }

    /// Whether the shader ends.
    pub fn ends(self) -> bool {
        self.0 == 15
    }

    /// The name: `none`, `wait0`, `end`; nothing for a reserved value.
    pub fn name(self) -> Option<&'static str> {
        values::FLOW.name(self.0.into())
    }
}

impl Code {
    /// The register, where it is one.
    pub fn register(self) -> Option<u8> {
        match self {
            Code::Register { index, .. } => Some(index),
            _ => None,
        }
    }
}
