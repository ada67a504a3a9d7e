// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shader: the clauses that control flow can reach.

use crate::clause::{Clause, FlowControl, Operand};
use crate::decode::decode_clause_with;
use crate::error::DecodeError;
use crate::fau::{Fau, Relative};
use crate::info::Unit;
use crate::layout::WORD_BYTES;
use crate::names::Mnemonic;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

/// Where a branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Bytes from the branching clause's start.
    Relative(i32),
    /// Address 0: the thread ends, without an empty last block.
    End,
    /// Known only at run time.
    Dynamic,
}

/// Branch at the end of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    /// Its tuple; compilers use the last one only.
    pub tuple: u8,
    /// Where it goes.
    pub target: Target,
    /// Whether it may not be taken.
    pub conditional: bool,
}

impl Clause {
    /// The clause's branch.
    pub fn branch(&self) -> Option<Branch> {
        self.tuples.iter().enumerate().find_map(|(index, tuple)| {
            let (unit, conditional) = match (tuple.add.op.mnemonic(), tuple.fma.op.mnemonic()) {
                (Mnemonic::Jump, _) => (Unit::Add, false),
                (
                    Mnemonic::BranchF16
                    | Mnemonic::BranchF32
                    | Mnemonic::BranchI16
                    | Mnemonic::BranchI32
                    | Mnemonic::BranchS16
                    | Mnemonic::BranchS32
                    | Mnemonic::BranchU16
                    | Mnemonic::BranchU32
                    | Mnemonic::BranchzF16
                    | Mnemonic::BranchzF32
                    | Mnemonic::BranchzI16
                    | Mnemonic::BranchzI32
                    | Mnemonic::BranchzS16
                    | Mnemonic::BranchzS32
                    | Mnemonic::BranchzU16
                    | Mnemonic::BranchzU32
                    | Mnemonic::BranchcI16
                    | Mnemonic::BranchcI32
                    | Mnemonic::BranchDiverg
                    | Mnemonic::BranchNoDiverg
                    | Mnemonic::BranchLowbitsF32,
                    _,
                ) => (Unit::Add, true),
                (_, Mnemonic::JumpEx) => (Unit::Fma, true),
                _ => return None,
            };
            let sources = tuple.instruction(unit).sources();
            let operand = sources
                .last()
                .and_then(|source| tuple.operand(unit, *source));
            let target = match operand {
                Some(Operand::FauHigh(Fau::Constant {
                    value,
                    relative: Relative::High | Relative::Both,
                    ..
                })) => Target::Relative((((value >> 32) as u32) << 4) as i32 >> 4),
                Some(Operand::FauLow(Fau::Constant {
                    value,
                    relative: Relative::Both,
                    ..
                })) => Target::Relative(((value as u32) << 4) as i32 >> 4),
                Some(operand) if operand.constant() == Some(0) => Target::End,
                _ => Target::Dynamic,
            };
            Some(Branch {
                tuple: index as u8,
                target,
                conditional,
            })
        })
    }

    /// Whether the next clause in memory can follow.
    pub fn falls_through(&self) -> bool {
        self.header.flow_control != FlowControl::End
            && self.branch().is_none_or(|branch| branch.conditional)
    }
}

/// Clause with its place in the shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Bytes from the shader's start.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// At that offset.
    pub clause: Clause,
}

/// Clauses sorted by offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shader {
    /// Reachable ones.
    pub clauses: Vec<Placed>,
    /// Whether a branch target is known only at run time.
    pub dynamic: bool,
}

/// Invalid clause at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaderError<E = DecodeError> {
    /// Negative or unaligned only for a bad branch.
    pub offset: i64,
    /// The cause.
    pub error: E,
}

impl<E: fmt::Display> fmt::Display for ShaderError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clause at offset {:#x}: {}", self.offset, self.error)
    }
}

impl<E: core::error::Error> core::error::Error for ShaderError<E> {}

impl Shader {
    /// Follows all branches.
    ///
    /// # Errors
    /// The first clause that does not decode, in order of discovery.
    pub fn decode(code: &[u8]) -> Result<Shader, ShaderError> {
        Shader::decode_with(|offset| {
            let start = offset as usize;
            let word = code
                .get(start..start.saturating_add(WORD_BYTES))
                .and_then(|w| w.try_into().ok());
            word.ok_or(DecodeError::Truncated { offset: start })
        })
    }

    /// Reads 16-byte words by byte offset, for example through an MMU. Branches must stay in the 4 GiB above the
    /// shader's start.
    ///
    /// # Errors
    /// As [`Shader::decode`], or what `word` returns.
    pub fn decode_with<E: From<DecodeError>>(
        mut word: impl FnMut(u32) -> Result<[u8; WORD_BYTES], E>,
    ) -> Result<Shader, ShaderError<E>> {
        let mut found: BTreeMap<u32, Placed> = BTreeMap::new();
        let mut pending = alloc::vec![0u32];
        let mut dynamic = false;
        while let Some(offset) = pending.pop() {
            if found.contains_key(&offset) {
                continue;
            }
            let decoded = decode_clause_with(|index| {
                let at = offset.checked_add((index * WORD_BYTES) as u32);
                word(at.ok_or(DecodeError::Truncated {
                    offset: index * WORD_BYTES,
                })?)
            });
            let (clause, size) = decoded.map_err(|error| ShaderError {
                offset: offset.into(),
                error,
            })?;
            let size = size as u32;
            match clause.branch().map(|branch| branch.target) {
                Some(Target::Relative(distance)) => {
                    let target = i64::from(offset) + i64::from(distance);
                    let bad = || ShaderError {
                        offset: target,
                        error: DecodeError::Target { distance }.into(),
                    };
                    if target & 15 != 0 {
                        return Err(bad());
                    }
                    pending.push(u32::try_from(target).map_err(|_| bad())?);
                }
                Some(Target::Dynamic) => dynamic = true,
                Some(Target::End) | None => {}
            }
            if clause.falls_through() {
                let next = offset.checked_add(size).ok_or(DecodeError::Truncated {
                    offset: size as usize,
                });
                pending.push(next.map_err(|e| ShaderError {
                    offset: offset.into(),
                    error: e.into(),
                })?);
            }
            found.insert(
                offset,
                Placed {
                    offset,
                    size,
                    clause,
                },
            );
        }
        Ok(Shader {
            clauses: found.into_values().collect(),
            dynamic,
        })
    }

    /// Finds the clause at a byte offset.
    pub fn index_of(&self, offset: u32) -> Option<usize> {
        self.clauses
            .binary_search_by_key(&offset, |placed| placed.offset)
            .ok()
    }

    /// Bytes to the end of the last clause.
    pub fn size(&self) -> u64 {
        self.clauses.last().map_or(0, |placed| {
            u64::from(placed.offset) + u64::from(placed.size)
        })
    }

    /// Counts instructions, NOPs included.
    pub fn instructions(&self) -> usize {
        self.clauses
            .iter()
            .map(|placed| placed.clause.tuples.len() * 2)
            .sum()
    }
}
