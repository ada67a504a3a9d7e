// SPDX-License-Identifier: MIT OR Apache-2.0
//! From Valhall words to micro-operations: the second translator.
//!
//! A block is a run of words up to a branch, a barrier or an end. Messages are synchronous here, so waits have nothing to do. What is not
//! translated is a fault with the name of the instruction.
// A closure can be told to be inlined into its loop, a path cannot.
#![allow(clippy::redundant_closure)]

mod atomic;
mod control;
mod float;
mod integer;
mod message;
mod operands;

use mali_valhall::{Instruction, Op, Unit, WORD_BYTES};

use crate::FaultKind;
use crate::ir::micro::{Kind, MicroOp, OnRows, Run};
use crate::ir::{Branch, Clause, Constant, Next, Program, special as rows};
use crate::operations::loops::copy;
use crate::translate::{Trap, closed};

/// Most words of a block: as many instructions as a clause has, so that limits on work mean the same.
pub(crate) const LONGEST_BLOCK: usize = 16;

/// Whether a block ends behind an instruction.
pub(crate) fn ends_block(instruction: Instruction) -> bool {
    matches!(instruction.op(), Op::Branchz | Op::Branchzi | Op::Barrier)
        || instruction.flow().ends()
}

/// What a lane costs for which a function is called by itself, in sixteenths of a clause.
const CALL_COST: u32 = 3;

/// Translates the words of one block.
struct Translator<'p> {
    program: &'p mut Program,
    /// Address of the instruction at work.
    address: u64,
    ins: Instruction,
    /// Row of its result.
    dest: u16,
    next_temporary: u16,
    branch: Option<Branch>,
    barrier: bool,
    lane_cost: u32,
}

/// Translates the block at `address` of these words.
pub(crate) fn block(
    program: &mut Program,
    address: u64,
    words: &[Instruction],
) -> Result<Clause, Trap> {
    let start = program.ops.len();
    let Some(&first) = words.first() else {
        return Err(Trap {
            kind: FaultKind::InvalidEncoding,
            text: "a block without words".into(),
        });
    };
    let mut t = Translator {
        program,
        address,
        ins: first,
        dest: 0,
        next_temporary: rows::TEMPORARY,
        branch: None,
        barrier: false,
        lane_cost: 0,
    };
    let (mut fma, mut add, mut messages) = (0, 0, Vec::new());
    let mut at = address;
    for (index, word) in words.iter().enumerate() {
        (t.ins, t.address) = (*word, at);
        t.next_temporary = rows::TEMPORARY + (index as u16 & 1) * rows::TEMPORARIES;
        t.word()?;
        at = at.wrapping_add(WORD_BYTES as u64);
        match word.row().unit {
            Unit::Fma => fma += 1,
            Unit::Convert | Unit::Special => add += u64::from(word.op() != Op::Nop),
            _ => {
                messages.extend(message::counted(word.op()));
                t.lane_cost += message::cost(word.op());
            }
        }
    }
    let (branch, barrier, lane_cost) = (t.branch, t.barrier, t.lane_cost);
    let ended = words.last().is_some_and(|word| word.flow().ends());
    let next = match ended {
        true => Next::End,
        false => Next::Clause(program.number(at)),
    };
    Ok(Clause {
        branch,
        barrier,
        fma,
        add,
        messages,
        lane_cost,
        ..closed(program, address, start, next)
    })
}

impl Translator<'_> {
    fn word(&mut self) -> Result<(), Trap> {
        if let Err(broken) = self.ins.check() {
            return Err(self.trap(&format!("breaks a limit: {broken}")));
        }
        if let Some(to) = self.ins.destination() {
            if !(to.low && to.high) {
                return Err(self.trap("writes half of a register, which is not translated"));
            }
            self.dest = to.register.into();
        }
        if self.ins.value(&mali_valhall::SATURATE) == Some(1) {
            return Err(self.trap("saturates, which is not translated"));
        }
        self.instruction()
    }

    fn instruction(&mut self) -> Result<(), Trap> {
        match self.ins.op() {
            Op::Nop => Ok(()),
            Op::Branchz => self.branch(),
            Op::Barrier => {
                self.barrier = true;
                Ok(())
            }
            Op::LoadI8 => self.load(1),
            Op::LoadI16 => self.load(2),
            Op::LoadI24 => self.load(3),
            Op::LoadI32 => self.load(4),
            Op::LoadI48 => self.load(6),
            Op::LoadI64 => self.load(8),
            Op::LoadI96 => self.load(12),
            Op::LoadI128 => self.load(16),
            Op::StoreI8 => self.store(1),
            Op::StoreI16 => self.store(2),
            Op::StoreI24 => self.store(3),
            Op::StoreI32 => self.store(4),
            Op::StoreI48 => self.store(6),
            Op::StoreI64 => self.store(8),
            Op::StoreI96 => self.store(12),
            Op::StoreI128 => self.store(16),
            Op::AtomI32 | Op::AtomReturnI32 => self.atomic(),
            Op::Atom1ReturnI32 => self.atomic_of_one(),
            op if self.integer(op)? || self.float(op)? => Ok(()),
            _ => Err(self.trap("is not translated")),
        }
    }

    fn trap(&self, why: &str) -> Trap {
        Trap {
            kind: FaultKind::InvalidEncoding,
            text: format!("{} {why}", self.ins.row().name),
        }
    }

    /// A row for a value that no register holds. It lasts until the end of the next word.
    fn temporary(&mut self) -> Result<u16, Trap> {
        let row = self.next_temporary;
        self.next_temporary += 1;
        if (row - rows::TEMPORARY) % rows::TEMPORARIES == rows::TEMPORARIES - 1 {
            return Err(self.trap("needs more temporary rows than there are"));
        }
        Ok(row)
    }

    /// The row that holds a number.
    fn number(&mut self, value: u32) -> u16 {
        self.program.constant(Constant::Value(value))
    }

    fn emit(&mut self, run: Run, d: u16, [a, b, c, e]: [u16; 4], m: u32, sources: u8, kind: Kind) {
        self.program.ops.push(MicroOp {
            run,
            d,
            a,
            b,
            c,
            e,
            m,
            sources,
            kind,
            part: 0,
        });
    }

    /// Emits a function of up to four rows.
    fn rows<const N: usize>(&mut self, run: OnRows, d: u16, sources: [u16; N], m: u32) {
        let mut all = [0; 4];
        for (to, from) in all.iter_mut().zip(sources) {
            *to = from;
        }
        self.emit(Run::Rows(run), d, all, m, N as u8, Kind::Plain);
    }

    /// Emits a function of up to four rows that is called lane by lane.
    fn rare<const N: usize>(&mut self, run: OnRows, d: u16, sources: [u16; N], m: u32) {
        self.lane_cost += CALL_COST;
        self.rows(run, d, sources, m);
    }

    fn copy(&mut self, from: u16, to: u16) {
        self.rows(copy, to, [from], 0);
        self.known_as(Kind::Copy);
    }

    /// Says what the micro-operation does that came last.
    fn known_as(&mut self, kind: Kind) {
        if let Some(op) = self.program.ops.last_mut() {
            op.kind = kind;
        }
    }
}
