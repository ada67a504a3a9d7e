// SPDX-License-Identifier: MIT OR Apache-2.0
//! From code in memory to clauses of a program.
//!
//! The clauses that the flow of control leads to are decoded at once, as far as a compiler's shaders reach; what lies further,
//! or behind computed jumps, when a thread comes to it.

use mali_memory::PAGE_SIZE;

use crate::core::{OFFSET, Tlb};
use crate::ir::micro::MicroOp;
use crate::ir::{Clause, Isa, Program};
use crate::{FaultKind, ShaderFault, translate, valhall};

/// Clauses of a shader that are decoded before a thread comes to them.
pub(super) const AHEAD: usize = 1 << 10;

/// Most clauses that a shader may have before the model refuses to go on.
pub(super) const MOST_CLAUSES: usize = 1 << 16;

/// Most bytes that a shader's micro-operations may take up before the model refuses to go on.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// Most constants of a shader: each is a row of every batch.
const MOST_CONSTANTS: usize = 1 << 12;

/// More bytes than a clause of eight tuples and six constants has.
const LONGEST_CLAUSE: usize = 256;

/// The bytes that a program was decoded from.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// Bytes by address, in the order in which decoding reached them.
    pieces: Vec<(u64, Vec<u8>)>,
    /// Some of the code could not be fetched; the next time it may be.
    unreadable: bool,
}

impl Code {
    /// Whether memory still holds the code. Pages are compared in the order in which decoding reached them and none after the
    /// first difference: other code at the same place need not be as long, and a fetch that the MMU refuses is reported to
    /// software.
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

    /// Bytes of memory that it takes up.
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

/// The shader whose first clause is at `entry`, decoded [`AHEAD`], and the code that it was decoded from.
pub(super) fn shader(entry: u64, isa: Isa, fetch: &mut Tlb<'_>) -> (Program, Code) {
    let (mut program, mut code) = (Program::new(entry, isa), Code::default());
    let mut number = 0;
    while number < program.clauses.len().min(AHEAD) {
        decode_into(&mut program, number, &mut code, fetch);
        number += 1;
    }
    (program, code)
}

/// Decodes the clause of a number, which a thread has come to.
pub(crate) fn clause(program: &mut Program, number: u32, fetch: &mut Tlb<'_>) {
    decode_into(program, number as usize, &mut Code::default(), fetch);
}

fn decode_into(program: &mut Program, number: usize, code: &mut Code, fetch: &mut Tlb<'_>) {
    let Some(address) = program.clauses.get(number).map(|clause| clause.address) else {
        return;
    };
    let clause = decode(program, address, code, fetch).unwrap_or_else(Clause::faulty);
    program.clauses[number] = clause;
}

fn decode(
    program: &mut Program,
    address: u64,
    code: &mut Code,
    fetch: &mut Tlb<'_>,
) -> Result<Clause, ShaderFault> {
    let (multiple, what) = match program.isa {
        Isa::Bifrost(_) => (16, "a clause must lie at a multiple of 16"),
        Isa::Valhall(_) => (8, "an instruction must lie at a multiple of 8"),
    };
    if !address.is_multiple_of(multiple) {
        return Err(faulty(address, FaultKind::InvalidPc, what.into()));
    }
    let too_large = || {
        faulty(
            address,
            FaultKind::InvalidPc,
            "the shader is larger than any compiler makes one".into(),
        )
    };
    if program.clauses.len() > MOST_CLAUSES || program.constants() >= MOST_CONSTANTS {
        return Err(too_large());
    }
    let end = program.ops.len();
    let translated = match program.isa {
        Isa::Bifrost(_) => clause_at(program, address, code, fetch),
        Isa::Valhall(_) => block_at(program, address, code, fetch),
    };
    let fits = program.ops.len() * size_of::<MicroOp>() <= MOST_BYTES;
    let translated = translated.and_then(|clause| match fits {
        true => Ok(clause),
        false => Err(too_large()),
    });
    if translated.is_err() {
        program.ops.truncate(end);
    }
    translated
}

/// The fault of code that cannot be fetched.
fn refused(code: &mut Code, address: u64, mmu: crate::MmuFault) -> ShaderFault {
    code.unreadable = true;
    ShaderFault {
        address: mmu.va,
        text: format!("cannot fetch instructions: {mmu}"),
        kind: FaultKind::Mmu(mmu),
        clause: address,
    }
}

/// The fault of the clause or block at an address.
fn faulty(address: u64, kind: FaultKind, text: String) -> ShaderFault {
    ShaderFault {
        kind,
        address,
        clause: address,
        text,
    }
}

/// The Valhall words from an address up to the end of their block.
fn block_at(
    program: &mut Program,
    address: u64,
    code: &mut Code,
    fetch: &mut Tlb<'_>,
) -> Result<Clause, ShaderFault> {
    let mut words = Vec::new();
    let mut at = address;
    while words.len() < valhall::LONGEST_BLOCK {
        let mut bytes = [0; mali_valhall::WORD_BYTES];
        if let Err(mmu) = fetch.read(at, &mut bytes) {
            return Err(refused(code, address, mmu));
        }
        code.push(at, &bytes);
        let word = u64::from_le_bytes(bytes);
        let Some(instruction) = mali_valhall::Instruction::decode(word) else {
            let text = format!("{word:#018x} is no instruction");
            return Err(faulty(address, FaultKind::InvalidEncoding, text));
        };
        words.push(instruction);
        if valhall::ends_block(instruction) {
            break;
        }
        at = at.wrapping_add(bytes.len() as u64);
    }
    valhall::block(program, address, &words).map_err(|trap| faulty(address, trap.kind, trap.text))
}

/// The clause at an address.
fn clause_at(
    program: &mut Program,
    address: u64,
    code: &mut Code,
    fetch: &mut Tlb<'_>,
) -> Result<Clause, ShaderFault> {
    // The page behind the clause is fetched only if the clause reaches into it: code may end where its memory ends.
    let mut bytes = [0; LONGEST_CLAUSE];
    let mut length = 0;
    let (clause, length) = loop {
        let at = address.wrapping_add(length as u64);
        let in_page = (OFFSET + 1 - (at & OFFSET)) as usize;
        let end = LONGEST_CLAUSE.min(length + in_page);
        let stopped = fetch.read(at, &mut bytes[length..end]).err();
        if stopped.is_none() {
            length = end;
        }
        match (mali_isa::decode_clause(&bytes[..length]), stopped) {
            (Ok(decoded), _) => break decoded,
            (Err(mali_isa::DecodeError::Truncated { .. }), Some(mmu)) => {
                return Err(refused(code, address, mmu));
            }
            (Err(mali_isa::DecodeError::Truncated { .. }), None) if length < LONGEST_CLAUSE => {}
            (Err(error), _) => {
                // What could not be decoded is part of the code, too.
                code.push(address, &bytes[..length]);
                let text = error.to_string();
                return Err(faulty(address, FaultKind::InvalidEncoding, text));
            }
        }
    };
    code.push(address, &bytes[..length]);
    translate::clause(program, address, &clause, length as u64)
        .map_err(|trap| faulty(address, trap.kind, trap.text))
}
