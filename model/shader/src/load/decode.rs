// SPDX-License-Identifier: MIT OR Apache-2.0
//! From code in memory to clauses.
//!
//! Clauses reached by control flow are decoded at once, as far as compilers' shaders reach; others, or those behind
//! computed jumps, when a thread comes to them.

use gpureplay_memory::PAGE_SIZE;

use crate::core::{OFFSET, Tlb};
use crate::ir::micro::MicroOp;
use crate::ir::{self, Clause, Program, State, Translate, Trap};
use crate::optimise::fuse::fuse;
use crate::{FaultKind, MmuFault, ShaderFault};

/// Clauses decoded in advance.
pub(super) const AHEAD: usize = 1 << 10;

pub(super) const MOST_CLAUSES: usize = 1 << 16;

pub(super) const MOST_BYTES: usize = 8 << 20;

/// Each is a row of every batch.
const MOST_CONSTANTS: usize = 1 << 12;

#[derive(Debug, Default)]
pub(super) struct Code {
    pieces: Vec<(u64, Vec<u8>)>,
    /// The MMU refused a fetch; it may not next time.
    unreadable: bool,
}

impl Code {
    /// Stops at the first difference in decoding order: other code may be shorter, and software sees a fetch that
    /// the MMU refuses.
    pub(super) fn is_current(&self, fetch: &mut Tlb<'_>) -> bool {
        let mut now = [0; PAGE_SIZE];
        let mut same = |mut at: u64, mut bytes: &[u8]| {
            while !bytes.is_empty() {
                let in_page = PAGE_SIZE - (at & OFFSET) as usize;
                let (here, rest) = bytes.split_at(in_page.min(bytes.len()));
                let read = &mut now[..here.len()];
                if fetch.read(at, read).is_err() || read != here {
                    return false;
                }
                at = at.wrapping_add(here.len() as u64);
                bytes = rest;
            }
            true
        };
        let mut pieces = self.pieces.iter();
        !self.unreadable && pieces.all(|(address, bytes)| same(*address, bytes))
    }

    pub(super) fn bytes(&self) -> usize {
        let pieces = self.pieces.iter();
        let bytes: usize = pieces.map(|(_, bytes)| bytes.capacity()).sum();
        self.pieces.capacity() * size_of::<(u64, Vec<u8>)>() + bytes
    }

    fn push(&mut self, address: u64, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some((start, code)) if start.wrapping_add(code.len() as u64) == address => {
                code.extend_from_slice(bytes);
            }
            _ => self.pieces.push((address, bytes.to_vec())),
        }
    }
}

pub(super) fn shader(entry: u64, isa: &dyn Translate, fetch: &mut Tlb<'_>) -> (Program, Code) {
    let (mut program, mut code) = (Program::new(entry), Code::default());
    let mut number = 0;
    while number < program.clauses.len().min(AHEAD) {
        decode_into(&mut program, number, isa, &mut code, fetch);
        number += 1;
    }
    (program, code)
}

pub(crate) fn clause(program: &mut Program, number: u32, isa: &dyn Translate, fetch: &mut Tlb<'_>) {
    decode_into(program, number as usize, isa, &mut Code::default(), fetch);
}

struct Fetch<'a, 's> {
    tlb: &'a mut Tlb<'s>,
    code: &'a mut Code,
}

impl ir::Code for Fetch<'_, '_> {
    fn read(&mut self, address: u64, to: &mut [u8]) -> Result<(), MmuFault> {
        self.tlb.read(address, to)
    }

    fn used(&mut self, address: u64, bytes: &[u8]) {
        self.code.push(address, bytes);
    }
}

fn decode_into(
    program: &mut Program,
    number: usize,
    isa: &dyn Translate,
    code: &mut Code,
    tlb: &mut Tlb<'_>,
) {
    let Some(address) = program.clauses.get(number).map(|clause| clause.address) else {
        return;
    };
    let mut fetch = Fetch { tlb, code };
    let clause = decode(isa, program, address, &mut fetch);
    program.clauses[number] = clause.unwrap_or_else(|Trap { kind, text }| {
        code.unreadable |= matches!(kind, FaultKind::Mmu(_));
        Clause::faulty(ShaderFault {
            kind,
            address: match kind {
                FaultKind::Mmu(mmu) => mmu.va,
                _ => address,
            },
            clause: address,
            text,
        })
    });
}

fn decode(
    isa: &dyn Translate,
    program: &mut Program,
    address: u64,
    fetch: &mut Fetch<'_, '_>,
) -> Result<Clause, Trap> {
    let refused = |text: &str| Trap {
        kind: FaultKind::InvalidPc,
        text: text.into(),
    };
    let too_large = "the shader is larger than any compiler makes one";
    let (multiple, misplaced) = isa.alignment();
    if !address.is_multiple_of(multiple) {
        return Err(refused(misplaced));
    }
    if program.clauses.len() > MOST_CLAUSES || program.constants() >= MOST_CONSTANTS {
        return Err(refused(too_large));
    }
    let block = isa.block(program, address, fetch)?;
    let (ops, start) = (fuse(&block.ops), program.ops.len());
    if (start + ops.len()) * size_of::<MicroOp>() > MOST_BYTES {
        return Err(refused(too_large));
    }
    program.ops.extend(ops);
    Ok(Clause {
        state: State::Ready,
        ops: start..program.ops.len(),
        next: block.next,
        branch: block.branch,
        barrier: block.barrier,
        fma: block.fma,
        add: block.add,
        messages: block.messages,
        lane_cost: block.lane_cost,
        ..Clause::pending(address)
    })
}
