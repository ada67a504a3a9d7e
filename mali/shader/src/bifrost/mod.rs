// SPDX-License-Identifier: MIT OR Apache-2.0
//! From decoded clauses to micro-operations.
//!
//! Modifiers choose a function or add micro-operations on temporary rows.
// Closures can be inlined by request, paths cannot.
#![allow(clippy::redundant_closure)]

pub(crate) mod absent;
mod arithmetic;
mod atomic;
mod control;
mod convert;
mod float;
mod graphics;
mod half;
mod image;
mod instruction;
mod integer;
mod message;
mod operands;
mod shift;
mod special;
mod wide;

use std::any::Any;

use gpureplay_shader::FaultKind;
use gpureplay_shader::core::OFFSET;
use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::MicroOp;
use gpureplay_shader::ir::{
    Block, Branch, Code, Constant, Next, Program, Translate, Trap, special as rows,
};
use mali_isa::{
    FlowControl, Instruction, Message, Mnemonic, Operand, Part, Product, StagingCount, Tuple, Unit,
};

use self::absent::{Absence, absence};
use crate::MESSAGES;

/// More than eight tuples and six constants.
const LONGEST_CLAUSE: usize = 256;

/// `None`: every known instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bifrost(pub(crate) Option<Product>);

static BIFROST: [Bifrost; Product::ALL.len() + 1] = {
    let (mut all, mut at) = ([Bifrost(None); Product::ALL.len() + 1], 0);
    while at < Product::ALL.len() {
        all[at] = Bifrost(Some(Product::ALL[at]));
        at += 1;
    }
    all
};

impl Bifrost {
    pub(crate) fn of(product: Option<Product>) -> &'static Bifrost {
        let [known @ .., all] = &BIFROST;
        known.iter().find(|one| one.0 == product).unwrap_or(all)
    }
}

/// What an FMA instruction leaves to its tuple's ADD instruction, besides the result.
#[derive(Clone, Copy, Debug, Default)]
enum Side {
    #[default]
    Nothing,
    /// `SHADDXL`: the high word's row, and the shift if the operand has a high word.
    Address { carry: u16, shift: Option<u32> },
    /// `*_DOUBLE`.
    Double {
        kind: gpureplay_shader::alu::shift::Double,
        bytes: bool,
    },
    /// `SEG_ADD`: the offset's low word.
    Segment(u16),
    /// `CUBEFACE1`: coordinates.
    Cube([u16; 3]),
    /// `ATOM_C` and relatives; whether the old value is wanted.
    Atomic {
        op: mali_isa::Atomic,
        argument: Option<u16>,
        returns: bool,
        wide: bool,
    },
}

struct Translator<'p> {
    program: &'p mut Program,
    ops: Vec<MicroOp>,
    product: Option<Product>,
    clause: &'p mali_isa::Clause,
    address: u64,
    tuple: Tuple,
    unit: Unit,
    ins: Instruction,
    dest: u16,
    /// Rows of t, t0 and t1.
    stage: u16,
    t0: u16,
    t1: u16,
    /// High words of 64-bit tuples.
    wide: [u16; 2],
    side: Side,
    next_temporary: u16,
    branch: Option<Branch>,
    barrier: bool,
    /// Sixteenths of a clause.
    lane_cost: u32,
}

impl Translate for Bifrost {
    fn is(&self, other: &dyn Translate) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }

    fn messages(&self) -> &'static [&'static str] {
        &MESSAGES
    }

    fn alignment(&self) -> (u64, &'static str) {
        (16, "a clause must lie at a multiple of 16")
    }

    fn block(
        &self,
        program: &mut Program,
        address: u64,
        code: &mut dyn Code,
    ) -> Result<Block, Trap> {
        // Code may end with its memory.
        let mut bytes = [0; LONGEST_CLAUSE];
        let mut length = 0;
        let (clause, length) = loop {
            let at = address.wrapping_add(length as u64);
            let in_page = (OFFSET + 1 - (at & OFFSET)) as usize;
            let end = LONGEST_CLAUSE.min(length + in_page);
            let stopped = code.read(at, &mut bytes[length..end]).err();
            if stopped.is_none() {
                length = end;
            }
            match (mali_isa::decode_clause(&bytes[..length]), stopped) {
                (Ok(decoded), _) => break decoded,
                (Err(mali_isa::DecodeError::Truncated { .. }), Some(mmu)) => return Err(mmu.into()),
                (Err(mali_isa::DecodeError::Truncated { .. }), None) if length < LONGEST_CLAUSE => {
                }
                (Err(error), _) => {
                    code.used(address, &bytes[..length]);
                    return Err(Trap {
                        kind: FaultKind::InvalidEncoding,
                        text: error.to_string(),
                    });
                }
            }
        };
        code.used(address, &bytes[..length]);
        translate(program, self.0, address, &clause, length as u64)
    }
}

fn translate(
    program: &mut Program,
    product: Option<Product>,
    address: u64,
    clause: &mali_isa::Clause,
    length: u64,
) -> Result<Block, Trap> {
    let zero = program.constant(Constant::Value(0));
    let Some(&tuple) = clause.tuples.first() else {
        return Err(Trap {
            kind: FaultKind::InvalidEncoding,
            text: "a clause without tuples".into(),
        });
    };
    let mut t = Translator {
        program,
        ops: Vec::new(),
        product,
        clause,
        address,
        tuple,
        unit: Unit::Fma,
        ins: tuple.fma,
        dest: zero,
        stage: zero,
        t0: zero,
        t1: zero,
        wide: [zero; 2],
        side: Side::Nothing,
        next_temporary: rows::TEMPORARY,
        branch: None,
        barrier: false,
        lane_cost: 0,
    };
    let (mut fma, mut add, mut messages) = (0, 0, Vec::new());
    for (index, tuple) in clause.tuples.iter().enumerate() {
        t.tuple = *tuple;
        t.next_temporary = rows::TEMPORARY + (index as u16 & 1) * rows::TEMPORARIES;
        if tuple.is_wide() {
            t.wide_tuple(zero)?;
            fma += 1;
            continue;
        }
        t.narrow_tuple(clause.tuples.get(index + 1), zero)?;
        fma += u64::from(tuple.fma.op.mnemonic() != Mnemonic::Nop);
        let message = tuple.add.op.info().message;
        add += u64::from(message.is_none() && tuple.add.op.mnemonic() != Mnemonic::Nop);
        messages.extend(message.map(Message::number));
        t.lane_cost += message.map_or(0, message_cost);
    }
    let next = match clause.header.flow_control {
        FlowControl::End => Next::End,
        _ => Next::Clause(t.program.number(address.wrapping_add(length))),
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

/// Sixteenths of a clause per lane. Slow loads and stores count elsewhere.
fn message_cost(message: Message) -> u32 {
    match message {
        Message::Tex | Message::Vartex => 128,
        Message::Varying | Message::Attribute => 48,
        Message::Blend | Message::Tile | Message::ZStencil | Message::Atest => 32,
        Message::Atomic => 16,
        Message::Load | Message::Store | Message::Barrier | Message::Job | Message::Wide => 0,
    }
}

impl Translator<'_> {
    fn narrow_tuple(&mut self, following: Option<&Tuple>, zero: u16) -> Result<(), Trap> {
        let tuple = self.tuple;
        let next_reads = |operand: Operand| {
            following.is_some_and(|next| next.operands(Unit::Add).any(|read| read == operand))
        };
        let next_fma = following
            .and_then(|next| next.fma_destination)
            .map(|to| to.register);
        let fma_register = self.register(tuple.fma_destination, Unit::Fma)?;
        let add_register = self.register(tuple.add_destination, Unit::Add)?;

        // Late if the old value, or the result after a later write, is needed.
        let late = fma_register.filter(|&register| {
            self.add_touches(register)
                || add_register == Some(register)
                || (next_fma == Some(register) && next_reads(Operand::T0))
        });
        self.side = Side::Nothing;
        self.unit = Unit::Fma;
        self.ins = tuple.fma;
        self.stage = zero;
        let mut fma_row = match fma_register {
            Some(register) if late.is_none() => register.into(),
            _ => self.temporary()?,
        };
        self.dest = fma_row;
        if tuple.fma.op.mnemonic() == Mnemonic::Nop {
            match fma_register {
                Some(_) => self.copy(zero, fma_row),
                None => fma_row = zero,
            }
        } else {
            self.present()?;
            self.instruction()?;
        }

        self.unit = Unit::Add;
        self.ins = tuple.add;
        self.stage = fma_row;
        let late_add =
            add_register.filter(|&register| next_fma == Some(register) && next_reads(Operand::T1));
        let mut add_row = match add_register {
            Some(register) if late_add.is_none() => register.into(),
            _ => self.temporary()?,
        };
        self.dest = add_row;
        if tuple.add.op.mnemonic() == Mnemonic::Nop {
            match add_register {
                Some(_) => self.copy(zero, add_row),
                None => add_row = zero,
            }
        } else {
            self.present()?;
            self.instruction()?;
        }
        if let Some(register) = late {
            self.copy(fma_row, register.into());
        }
        if let Some(register) = late_add {
            self.copy(add_row, register.into());
        }
        (self.t0, self.t1) = (fma_row, add_row);
        Ok(())
    }

    fn register(&self, to: Option<mali_isa::Destination>, unit: Unit) -> Result<Option<u8>, Trap> {
        match to {
            None => Ok(None),
            Some(to) if to.part == Part::Full => Ok(Some(to.register)),
            Some(to) => Err(self.trap_at(
                unit,
                &format!("writes half of r{}, which no compiler does", to.register),
            )),
        }
    }

    fn add_touches(&self, register: u8) -> bool {
        let reads = self
            .tuple
            .operands(Unit::Add)
            .any(|operand| operand == Operand::Register(register));
        let staging = self.tuple.add.op.info().staging.is_some_and(|staging| {
            let count = match staging.count {
                StagingCount::Words(words) => words,
                StagingCount::Format => 4,
                StagingCount::Descriptor => 8,
            };
            let first = self.clause.header.staging_register;
            register >= first && register - first < count
        });
        reads || staging
    }

    fn present(&self) -> Result<(), Trap> {
        let info = self.ins.op.info();
        match self.product {
            Some(product) if !info.products.contains(product) => Err(self.trap(&format!(
                "is no instruction of {product}: {}",
                info.product_evidence.name()
            ))),
            _ => Ok(()),
        }
    }

    fn absent(&self) -> Trap {
        self.trap(&match absence(self.ins.op.mnemonic()) {
            Some(Absence::Stage(what)) => {
                format!("works on {what}, which a compute shader does not have")
            }
            Some(Absence::Unknown(what)) => {
                format!("cannot be executed, because something about it is not public: {what}")
            }
            None => "is not modelled".into(),
        })
    }

    fn trap(&self, why: &str) -> Trap {
        self.trap_at(self.unit, why)
    }

    fn trap_at(&self, unit: Unit, why: &str) -> Trap {
        let info = self.tuple.instruction(unit).op.info();
        Trap {
            kind: FaultKind::InvalidEncoding,
            text: format!("{}{} {why}", unit.mark(), info.name),
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

    /// Takes a row until the next tuple's end.
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
