// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader as clauses of micro-operations, with the tables that they refer to by number.

use std::collections::HashMap;

use mali_isa::Product;

use super::clause::Clause;
use super::micro::MicroOp;
use super::special;
use crate::Subnormals;
use crate::rows::Rows;

/// Push uniforms end here; blend descriptor 0 follows, if there is one.
pub(crate) const STAGE_WORDS: u16 = 256;

/// A value that is the same for all lanes of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    /// A number in the code.
    Value(u32),
    /// A word of the push uniforms.
    Uniform(u16),
}

impl Constant {
    /// The value in a dispatch with these push uniforms; those that it does not have are zero.
    fn value(self, uniforms: &[u32]) -> u32 {
        match self {
            Constant::Value(value) => value,
            Constant::Uniform(word) => uniforms.get(usize::from(word)).copied().unwrap_or(0),
        }
    }
}

/// Whose instructions a shader has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// Bifrost's: those of a product, or all that are known.
    Bifrost(Option<Product>),
    /// Valhall's, and what becomes of subnormal numbers.
    Valhall(Subnormals),
}

/// A shader. Clauses and constants have numbers from the moment when something first refers to them; numbers never change, so
/// that a program may grow while threads execute it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Address of the first clause, which is number 0.
    pub(crate) entry: u64,
    /// The instructions that it may contain.
    pub(crate) isa: Isa,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) ops: Vec<MicroOp>,
    /// Registers that a thread may read before it writes them, as bits.
    pub(crate) visible: u64,
    /// Whether instructions look at other lanes of the warp.
    pub(crate) sees_warp: bool,
    /// Whether it was made for push uniforms, because dispatches with them are large or come again.
    pub(crate) own: bool,
    /// Constants by row, from [`special::CONSTANT`] on.
    constants: Vec<Constant>,
    rows_of_constants: HashMap<Constant, u16>,
    numbers: HashMap<u64, u32>,
}

impl Program {
    /// A shader of which only the address is known.
    pub(crate) fn new(entry: u64, isa: Isa) -> Program {
        let mut program = Program {
            entry,
            isa,
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

    /// Whether threads may come to clauses that are not decoded: what is known of registers and lanes is not all then.
    pub(crate) fn is_open(&self) -> bool {
        self.clauses
            .iter()
            .any(|clause| clause.is_pending() || clause.jumps())
    }

    /// Registers whose first value a thread may see.
    pub(crate) fn first_values(&self) -> u64 {
        if self.is_open() {
            u64::MAX
        } else {
            self.visible
        }
    }

    /// Bytes of memory that the program takes up, tables included.
    pub(crate) fn bytes(&self) -> usize {
        let messages: usize = self.clauses.iter().map(|one| one.messages.capacity()).sum();
        let parts: usize = self.clauses.iter().map(|one| one.parts.capacity()).sum();
        size_of::<Program>()
            + self.clauses.capacity() * size_of::<Clause>()
            + self.ops.capacity() * size_of::<MicroOp>()
            + self.constants.capacity() * size_of::<Constant>()
            // A table has a byte of its own for each place.
            + self.rows_of_constants.capacity() * (size_of::<(Constant, u16)>() + 1)
            + self.numbers.capacity() * (size_of::<(u64, u32)>() + 1)
            + messages * size_of::<mali_isa::Message>()
            + parts * size_of::<u32>()
    }

    /// How many constants there are.
    pub(crate) fn constants(&self) -> usize {
        self.constants.len()
    }

    /// Gives a batch the rows that it lacks, with constants and push uniforms in them.
    pub(crate) fn complete(&self, rows: &mut Rows, uniforms: &[u32]) {
        while let Some(row) = rows.count().checked_sub(usize::from(special::CONSTANT)) {
            let Some(constant) = self.constants.get(row) else {
                return;
            };
            rows.push(constant.value(uniforms));
        }
    }

    /// The value of a row that holds the same in all lanes.
    pub(crate) fn value(&self, row: u16, uniforms: &[u32]) -> Option<u32> {
        let constant = row.checked_sub(special::CONSTANT)?;
        let constant = self.constants.get(usize::from(constant))?;
        Some(constant.value(uniforms))
    }

    /// The row of a constant.
    pub(crate) fn constant(&mut self, constant: Constant) -> u16 {
        let next = special::CONSTANT + self.constants.len() as u16;
        *self.rows_of_constants.entry(constant).or_insert_with(|| {
            self.constants.push(constant);
            next
        })
    }

    /// Number of the clause at an address, which may not be decoded yet.
    pub(crate) fn number(&mut self, address: u64) -> u32 {
        let next = self.clauses.len() as u32;
        *self.numbers.entry(address).or_insert_with(|| {
            self.clauses.push(Clause::pending(address));
            next
        })
    }
}
