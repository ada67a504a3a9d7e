// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader made ready for execution: clauses of micro-operations, found by following the flow of control.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use mali_memory::PAGE_SIZE;

use crate::engine::micro::{MicroOp, Trouble};
use crate::engine::rows::Rows;
use crate::engine::tlb::{OFFSET, Tlb};
use crate::{FaultKind, ShaderFault, translate};

/// Rows that hold values which depend on the lane alone.
pub(crate) mod special {
    use crate::engine::rows::REGISTERS;

    /// Number of the lane in its warp.
    pub(crate) const LANE_ID: u16 = REGISTERS as u16;
    /// Number of the warp in its work group.
    pub(crate) const WARP_ID: u16 = LANE_ID + 1;
    /// Number of the shader core.
    pub(crate) const CORE_ID: u16 = LANE_ID + 2;
    /// Address of the thread's storage, low word.
    pub(crate) const THREAD_LOW: u16 = LANE_ID + 3;
    /// Address of the thread's storage, high word.
    pub(crate) const THREAD_HIGH: u16 = LANE_ID + 4;
    /// Address of the work group's storage, low word.
    pub(crate) const WORKGROUP_LOW: u16 = LANE_ID + 5;
    /// Address of the work group's storage, high word.
    pub(crate) const WORKGROUP_HIGH: u16 = LANE_ID + 6;
    /// First of the rows for results that no register takes.
    pub(crate) const TEMPORARY: u16 = LANE_ID + 8;
    /// Temporary rows of a tuple; tuples take turns with two sets of them.
    pub(crate) const TEMPORARIES: u16 = 28;
    /// First of the rows that hold the same value in all lanes.
    pub(crate) const CONSTANT: u16 = TEMPORARY + 2 * TEMPORARIES;
}

/// Push uniforms end here; blend descriptor 0 follows, if there is one.
pub(crate) const STAGE_WORDS: u16 = 256;

/// Most clauses that a shader may have before the model refuses to go on.
const MOST_CLAUSES: usize = 1 << 16;

/// Most constants of a shader; their rows have 16-bit numbers.
const MOST_CONSTANTS: usize = 1 << 15;

/// More bytes than a clause of eight tuples and six constants has.
const LONGEST_CLAUSE: usize = 256;

/// A value that is the same for all lanes of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    /// A number in the code.
    Value(u32),
    /// A word of the push uniforms.
    Uniform(u16),
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    /// By all lanes.
    Always,
    /// By lanes whose word in a row is not zero.
    NonZero(u16),
    /// By all lanes of a warp if the word in a row is not zero in one of its active lanes.
    Any(u16),
    /// By all lanes of a warp if the word in a row is not zero in all its active lanes.
    All(u16),
    /// By all lanes of a warp if (or unless) some of its lanes that have not ended are elsewhere.
    Diverged(bool),
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// To a clause.
    Clause(u32),
    /// To the clause whose low address word is in a row; 0 ends the thread.
    Row(u16),
    /// Nowhere: the thread ends. A branch to address 0 does that.
    End,
}

/// A branch at the end of a clause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    pub(crate) condition: Condition,
    pub(crate) target: Target,
}

/// What follows a clause if no branch is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// The thread ends.
    End,
    /// Another clause.
    Clause(u32),
}

/// One clause.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) address: u64,
    pub(crate) ops: Range<usize>,
    pub(crate) next: Next,
    pub(crate) branch: Option<Branch>,
    /// Whether threads wait for their work group after the clause.
    pub(crate) barrier: bool,
    /// A fault that executing the clause raises, after its micro-operations.
    pub(crate) trap: Option<Arc<ShaderFault>>,
    /// Operations of a lane that executes the clause, by unit.
    pub(crate) fma: u64,
    pub(crate) add: u64,
    pub(crate) messages: Vec<mali_isa::Message>,
}

impl Clause {
    /// A clause that raises a fault.
    fn trap(address: u64, fault: ShaderFault) -> Clause {
        Clause {
            address,
            ops: 0..0,
            next: Next::End,
            branch: None,
            barrier: false,
            trap: Some(Arc::new(fault)),
            fma: 0,
            add: 0,
            messages: Vec::new(),
        }
    }

    /// The fault that trouble in this clause becomes.
    #[cold]
    pub(crate) fn fault(&self, trouble: Trouble) -> Box<ShaderFault> {
        let address = if trouble.address == 0 {
            self.address
        } else {
            trouble.address
        };
        Box::new(ShaderFault {
            kind: trouble.kind,
            address,
            clause: self.address,
            text: trouble.text,
        })
    }
}

/// A shader.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Address of the first clause, which is number 0.
    pub(crate) entry: u64,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) ops: Vec<MicroOp>,
    /// Registers that a thread may read before it writes them, as bits.
    pub(crate) visible: u64,
    /// Whether instructions look at other lanes of the warp.
    pub(crate) sees_warp: bool,
    /// Constants by row, from [`special::CONSTANT`] on.
    constants: Vec<Constant>,
    rows_of_constants: HashMap<Constant, u16>,
    /// Numbers of clauses by address, and the reverse. Clauses are numbered when something first refers to them.
    by_address: HashMap<u64, u32>,
    addresses: Vec<u64>,
    /// The push uniforms of the dispatch.
    uniforms: Vec<u32>,
    /// The bytes that were decoded, by address: what the memory must still hold for the program to be right.
    code: Vec<(u64, Vec<u8>)>,
    /// Some of it could not be fetched; the next time it may be.
    unreadable: bool,
}

impl Program {
    /// Decodes the shader whose first clause is at `entry`.
    pub(crate) fn new(entry: u64, fetch: &mut Tlb<'_>) -> Program {
        let mut program = Program {
            entry,
            clauses: Vec::new(),
            ops: Vec::new(),
            visible: 0,
            sees_warp: false,
            constants: Vec::new(),
            rows_of_constants: HashMap::new(),
            by_address: HashMap::new(),
            addresses: Vec::new(),
            uniforms: Vec::new(),
            code: Vec::new(),
            unreadable: false,
        };
        program.clause_at(entry, fetch);
        program
    }

    /// Whether memory still holds the code that was decoded. Pages are compared in the order in which decoding reaches
    /// them and none after the first difference: other code at the same place need not be as long, and a fetch that
    /// the MMU refuses is reported to software.
    pub(crate) fn is_current(&self, fetch: &mut Tlb<'_>) -> bool {
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
        !self.unreadable
            && self
                .code
                .iter()
                .all(|(address, bytes)| same(*address, bytes))
    }

    /// Sets the push uniforms that a dispatch reads.
    pub(crate) fn set_uniforms(&mut self, uniforms: &[u32]) {
        self.uniforms.clear();
        self.uniforms.extend_from_slice(uniforms);
    }

    /// Gives a batch the rows that it lacks, with constants and push uniforms in them.
    pub(crate) fn complete(&self, rows: &mut Rows) {
        while let Some(row) = rows.count().checked_sub(usize::from(special::CONSTANT)) {
            let Some(constant) = self.constants.get(row) else {
                return;
            };
            rows.push(match *constant {
                Constant::Value(value) => value,
                Constant::Uniform(word) => self.uniform(word),
            });
        }
    }

    /// The value of a row that holds the same in all lanes.
    pub(crate) fn value(&self, row: u16) -> Option<u32> {
        let constant = row.checked_sub(special::CONSTANT)?;
        match *self.constants.get(usize::from(constant))? {
            Constant::Value(value) => Some(value),
            Constant::Uniform(word) => Some(self.uniform(word)),
        }
    }

    /// A word of the push uniforms; those that the dispatch does not have are zero.
    fn uniform(&self, word: u16) -> u32 {
        self.uniforms.get(usize::from(word)).copied().unwrap_or(0)
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
        let next = self.addresses.len() as u32;
        *self.by_address.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            next
        })
    }

    /// Number of the clause at an address, decoded, with all that follows it.
    pub(crate) fn clause_at(&mut self, address: u64, fetch: &mut Tlb<'_>) -> u32 {
        let first = self.number(address);
        while let Some(&address) = self.addresses.get(self.clauses.len()) {
            let clause = match self.decode(address, fetch) {
                Ok(clause) => clause,
                Err(fault) => Clause::trap(address, fault),
            };
            self.clauses.push(clause);
        }
        first
    }

    fn decode(&mut self, address: u64, fetch: &mut Tlb<'_>) -> Result<Clause, ShaderFault> {
        let fault = |kind, text| ShaderFault {
            kind,
            address,
            clause: address,
            text,
        };
        if !address.is_multiple_of(16) {
            return Err(fault(
                FaultKind::InvalidPc,
                "a clause must lie at a multiple of 16".into(),
            ));
        }
        if self.clauses.len() >= MOST_CLAUSES || self.constants.len() >= MOST_CONSTANTS {
            return Err(fault(
                FaultKind::InvalidPc,
                "the shader is larger than any compiler makes one".into(),
            ));
        }
        // The page behind the clause is fetched only if the clause reaches into it: code may end where its memory ends.
        let mut bytes = [0; LONGEST_CLAUSE];
        let mut length = 0;
        let (clause, length) = loop {
            let at = address.wrapping_add(length as u64);
            let in_page = (OFFSET + 1 - (at & OFFSET)) as usize;
            let end = LONGEST_CLAUSE.min(length + in_page);
            let refused = fetch.read(at, &mut bytes[length..end]).err();
            if refused.is_none() {
                length = end;
            }
            match (mali_isa::decode_clause(&bytes[..length]), refused) {
                (Ok(decoded), _) => break decoded,
                (Err(mali_isa::DecodeError::Truncated { .. }), Some(mmu)) => {
                    self.unreadable = true;
                    let text = format!("cannot fetch instructions: {mmu}");
                    return Err(ShaderFault {
                        kind: FaultKind::Mmu(mmu),
                        address: mmu.va,
                        clause: address,
                        text,
                    });
                }
                (Err(mali_isa::DecodeError::Truncated { .. }), None) if length < LONGEST_CLAUSE => {
                }
                (Err(error), _) => {
                    // What could not be decoded is part of the code, too.
                    self.code.push((address, bytes[..length].to_vec()));
                    return Err(fault(FaultKind::InvalidEncoding, error.to_string()));
                }
            }
        };
        match self.code.last_mut() {
            Some((start, code)) if *start + code.len() as u64 == address => {
                code.extend_from_slice(&bytes[..length])
            }
            _ => self.code.push((address, bytes[..length].to_vec())),
        }
        let end = self.ops.len();
        translate::clause(self, address, &clause, length as u64).map_err(|trap| {
            self.ops.truncate(end);
            fault(trap.kind, trap.text)
        })
    }
}
