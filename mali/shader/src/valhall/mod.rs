// SPDX-License-Identifier: MIT OR Apache-2.0
//! From Valhall words to micro-operations.
//!
//! A block ends with a branch, a barrier or an end. Messages are synchronous, so waits do nothing; debug assertions
//! check them. An untranslated instruction is a fault with its name.
// Closures can be inlined by request, paths cannot.
#![allow(clippy::redundant_closure)]

mod atomic;
mod control;
mod convert;
mod float;
mod graphics;
mod image;
mod integer;
mod logic;
mod message;
mod operands;
mod special;
mod waits;
mod wide;

use std::any::Any;

use gpureplay_shader::FaultKind;
use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::MicroOp;
use gpureplay_shader::ir::{Block, Branch, Code, Next, Program, Translate, Trap, special as rows};
use mali_isa::Message;
use mali_isa::valhall::{Instruction, LONGEST_BLOCK, Op, Unit, WORD_BYTES};

use self::waits::Pending;
use crate::MESSAGES;
use crate::Subnormals;
use crate::operations::tables::What;

struct Translator<'p> {
    program: &'p mut Program,
    ops: Vec<MicroOp>,
    subnormals: Subnormals,
    address: u64,
    ins: Instruction,
    dest: u16,
    next_temporary: u16,
    branch: Option<Branch>,
    barrier: bool,
    lane_cost: u32,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Valhall(pub(crate) Subnormals);

impl Valhall {
    pub(crate) fn of(subnormals: Subnormals) -> &'static Valhall {
        match subnormals {
            Subnormals::Kept => &Valhall(Subnormals::Kept),
            Subnormals::SinglesFlushed => &Valhall(Subnormals::SinglesFlushed),
            Subnormals::Flushed => &Valhall(Subnormals::Flushed),
        }
    }
}

impl Translate for Valhall {
    fn is(&self, other: &dyn Translate) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }

    fn messages(&self) -> &'static [&'static str] {
        &MESSAGES
    }

    fn alignment(&self) -> (u64, &'static str) {
        (8, "an instruction must lie at a multiple of 8")
    }

    fn block(
        &self,
        program: &mut Program,
        address: u64,
        code: &mut dyn Code,
    ) -> Result<Block, Trap> {
        let mut words = Vec::new();
        let mut at = address;
        while words.len() < LONGEST_BLOCK {
            let mut bytes = [0; WORD_BYTES];
            code.read(at, &mut bytes)?;
            code.used(at, &bytes);
            let word = u64::from_le_bytes(bytes);
            let instruction = Instruction::decode(word).ok_or_else(|| Trap {
                kind: FaultKind::InvalidEncoding,
                text: format!("{word:#018x} is no instruction"),
            })?;
            words.push(instruction);
            if instruction.ends_block() {
                break;
            }
            at = at.wrapping_add(bytes.len() as u64);
        }
        translate(program, self.0, address, &words)
    }
}

fn translate(
    program: &mut Program,
    subnormals: Subnormals,
    address: u64,
    words: &[Instruction],
) -> Result<Block, Trap> {
    let Some(&first) = words.first() else {
        return Err(Trap {
            kind: FaultKind::InvalidEncoding,
            text: "a block without words".into(),
        });
    };
    let mut t = Translator {
        program,
        ops: Vec::new(),
        subnormals,
        address,
        ins: first,
        dest: 0,
        next_temporary: rows::TEMPORARY,
        branch: None,
        barrier: false,
        lane_cost: 0,
    };
    let (mut fma, mut add, mut messages) = (0, 0, Vec::new());
    let (mut at, mut pending) = (address, Pending::default());
    for (index, word) in words.iter().enumerate() {
        (t.ins, t.address) = (*word, at);
        t.next_temporary = rows::TEMPORARY + (index as u16 & 1) * rows::TEMPORARIES;
        t.arrived(&mut pending)?;
        t.word()?;
        at = at.wrapping_add(WORD_BYTES as u64);
        match word.row().unit {
            Unit::Fma => fma += 1,
            Unit::Convert | Unit::Special => add += u64::from(word.op() != Op::Nop),
            _ => {
                messages.extend(message::counted(word.op()).map(Message::number));
                t.lane_cost += message::cost(word.op());
            }
        }
    }
    let ended = words.last().is_some_and(|word| word.flow().ends());
    let next = match ended {
        true => Next::End,
        false => Next::Clause(t.program.number(at)),
    };
    Ok(Block {
        ops: t.ops,
        next,
        branch: t.branch,
        barrier: t.barrier,
        fma,
        add,
        messages,
        lane_cost: t.lane_cost,
    })
}

impl Translator<'_> {
    fn word(&mut self) -> Result<(), Trap> {
        if let Err(broken) = self.ins.check() {
            return Err(self.trap(&format!("breaks a limit: {broken}")));
        }
        let Some(to) = self.ins.destination() else {
            return self.instruction();
        };
        let register = to.register.into();
        if to.low && to.high {
            self.dest = register;
            return self.instruction();
        }
        // The result is half a register.
        self.dest = self.temporary()?;
        self.instruction()?;
        self.reads(to.register);
        let mask = self.number(if to.low { 0xffff } else { 0xffff_0000 });
        let result = self.dest;
        map!(
            self,
            register,
            [register, result, mask],
            |old, new, mask| { old & !mask | new & mask }
        );
        Ok(())
    }

    fn instruction(&mut self) -> Result<(), Trap> {
        match self.ins.op() {
            Op::Nop => Ok(()),
            Op::Branchz => self.branch(),
            Op::Branchzi => self.branch_to_address(),
            Op::Barrier => {
                self.barrier = true;
                Ok(())
            }
            Op::Wmask => self.ballot(),
            Op::ClperI32 => self.lane_permute(),
            Op::LoadI8 => self.load(1),
            Op::LoadI16 => self.load(2),
            Op::LoadI24 => self.load(3),
            Op::LoadI32 => self.load(4),
            Op::LoadI48 => self.load(6),
            Op::LoadI64 => self.load(8),
            Op::LoadI96 => self.load(12),
            Op::LoadI128 => self.load(16),
            Op::LdBufferI8 => self.load_buffer(1),
            Op::LdBufferI16 => self.load_buffer(2),
            Op::LdBufferI24 => self.load_buffer(3),
            Op::LdBufferI32 => self.load_buffer(4),
            Op::LdBufferI48 => self.load_buffer(6),
            Op::LdBufferI64 => self.load_buffer(8),
            Op::LdBufferI96 => self.load_buffer(12),
            Op::LdBufferI128 => self.load_buffer(16),
            Op::StoreI8 => self.store(1),
            Op::StoreI16 => self.store(2),
            Op::StoreI24 => self.store(3),
            Op::StoreI32 => self.store(4),
            Op::StoreI48 => self.store(6),
            Op::StoreI64 => self.store(8),
            Op::StoreI96 => self.store(12),
            Op::StoreI128 => self.store(16),
            Op::AtomI32 | Op::AtomReturnI32 => self.atomic(false),
            Op::AtomI64 | Op::AtomReturnI64 => self.atomic(true),
            Op::Atom1ReturnI32 => self.atomic_of_one(false),
            Op::Atom1ReturnI64 => self.atomic_of_one(true),
            Op::LeaTex | Op::LeaTexImm => self.texel_address(),
            Op::LdTex | Op::LdTexImm => self.load_texel(),
            Op::StCvt => self.store_texel(),
            Op::TexFetch => self.texture(What::Fetch),
            Op::TexSingle => self.texture(What::Sample),
            Op::TexGather => self.texture(What::Gather),
            Op::LdAttrImm => self.load_attribute(),
            Op::LeaBufImm => self.packet_address(),
            Op::LdVarImm => self.varying(),
            Op::LdVarBufImmF32 => self.packet_varying(),
            Op::Atest => self.alpha_test(),
            Op::Blend => self.blend(),
            op if self.integer(op)? || self.logic(op)? || self.float(op)? => Ok(()),
            op if self.convert(op)? || self.table(op)? || self.wide(op)? => Ok(()),
            _ => Err(self.trap("is not translated")),
        }
    }

    fn trap(&self, why: &str) -> Trap {
        Trap {
            kind: FaultKind::InvalidEncoding,
            text: format!("{} {why}", self.ins.row().name),
        }
    }

    fn arrived(&self, pending: &mut Pending) -> Result<(), Trap> {
        match pending.next(self.ins).filter(|_| cfg!(debug_assertions)) {
            None => Ok(()),
            Some((register, slot)) => Err(self.trap(&format!(
                "touches r{register} before it has waited for slot {slot}"
            ))),
        }
    }
}

impl Emit for Translator<'_> {
    fn program(&mut self) -> &mut Program {
        self.program
    }

    fn ops(&mut self) -> &mut Vec<MicroOp> {
        &mut self.ops
    }

    /// A row until the next word's end.
    fn temporary(&mut self) -> Result<u16, Trap> {
        let row = self.next_temporary;
        self.next_temporary += 1;
        if (row - rows::TEMPORARY) % rows::TEMPORARIES == rows::TEMPORARIES - 1 {
            return Err(self.trap("needs more temporary rows than there are"));
        }
        Ok(row)
    }

    fn lane_cost(&mut self) -> &mut u32 {
        &mut self.lane_cost
    }
}
