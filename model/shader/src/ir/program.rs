// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader as clauses of micro-operations.

use std::collections::HashMap;

use super::clause::Clause;
use super::micro::MicroOp;
use super::special;
use crate::rows::Rows;

/// A value that all lanes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// Known to the translator.
    Value(u32),
    /// A word of the push uniforms.
    Uniform(u16),
}

impl Constant {
    fn value(self, uniforms: &[u32]) -> u32 {
        match self {
            Constant::Value(value) => value,
            Constant::Uniform(word) => uniforms.get(usize::from(word)).copied().unwrap_or(0),
        }
    }
}

/// Numbers of clauses and constants never change: a program may grow while threads execute it.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) entry: u64,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) ops: Vec<MicroOp>,
    /// Registers read before written, as bits.
    pub visible: u64,
    /// Instructions look at other lanes.
    pub sees_warp: bool,
    /// For push uniforms whose dispatches are large or repeated.
    pub(crate) own: bool,
    constants: Vec<Constant>,
    rows_of_constants: HashMap<Constant, u16>,
    numbers: HashMap<u64, u32>,
}

impl Program {
    pub(crate) fn new(entry: u64) -> Program {
        let mut program = Program {
            entry,
            clauses: Vec::new(),
            ops: Vec::new(),
            visible: 0,
            sees_warp: false,
            own: false,
            constants: Vec::new(),
            rows_of_constants: HashMap::new(),
            numbers: HashMap::new(),
        };
        program.number(entry);
        program
    }

    /// Clauses not decoded may be reached: registers and lanes are not fully known.
    pub(crate) fn is_open(&self) -> bool {
        self.clauses
            .iter()
            .any(|clause| clause.is_pending() || clause.jumps())
    }

    pub(crate) fn first_values(&self) -> u64 {
        if self.is_open() {
            u64::MAX
        } else {
            self.visible
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let messages: usize = self.clauses.iter().map(|one| one.messages.capacity()).sum();
        let parts: usize = self.clauses.iter().map(|one| one.parts.capacity()).sum();
        size_of::<Program>()
            + self.clauses.capacity() * size_of::<Clause>()
            + self.ops.capacity() * size_of::<MicroOp>()
            + self.constants.capacity() * size_of::<Constant>()
            // A table has a byte per place.
            + self.rows_of_constants.capacity() * (size_of::<(Constant, u16)>() + 1)
            + self.numbers.capacity() * (size_of::<(u64, u32)>() + 1)
            + messages
            + parts * size_of::<u32>()
    }

    pub(crate) fn constants(&self) -> usize {
        self.constants.len()
    }

    pub(crate) fn complete(&self, rows: &mut Rows, uniforms: &[u32]) {
        while let Some(row) = rows.count().checked_sub(usize::from(special::CONSTANT)) {
            let Some(constant) = self.constants.get(row) else {
                return;
            };
            rows.push(constant.value(uniforms));
        }
    }

    pub(crate) fn value(&self, row: u16, uniforms: &[u32]) -> Option<u32> {
        let constant = row.checked_sub(special::CONSTANT)?;
        let constant = self.constants.get(usize::from(constant))?;
        Some(constant.value(uniforms))
    }

    /// Row of a constant.
    pub fn constant(&mut self, constant: Constant) -> u16 {
        let next = special::CONSTANT + self.constants.len() as u16;
        *self.rows_of_constants.entry(constant).or_insert_with(|| {
            self.constants.push(constant);
            next
        })
    }

    /// Of the clause at an address.
    pub fn number(&mut self, address: u64) -> u32 {
        let next = self.clauses.len() as u32;
        *self.numbers.entry(address).or_insert_with(|| {
            self.clauses.push(Clause::pending(address));
            next
        })
    }
}
