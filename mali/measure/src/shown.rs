// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code of Bifrost or Valhall, as text.

use std::collections::BTreeSet;

use mali_isa::{ClauseText, InstructionText, Placed, Unit};

use crate::{Code, Job, Words};

/// Bytes; clauses are numbered in this unit.
const CLAUSE: u64 = 16;
/// Messages shown for one access of a block.
const MOST: usize = 3;

/// A shader's code.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// Bifrost.
    Clauses(&'a Code),
    /// Valhall.
    Words(&'a Words),
}

impl Job {
    /// Address, and code or error.
    pub fn code(&self) -> Option<(u64, Result<Shown<'_>, &str>)> {
        let (address, code) = match (&self.compute, &self.valhall) {
            (Some(compute), _) => {
                let code = compute.code.as_deref().map(Shown::Clauses);
                (compute.shader, code)
            }
            (_, Some(valhall)) => {
                let code = valhall.code.as_deref().map(Shown::Words);
                (valhall.launch.shader, code)
            }
            (None, None) => return None,
        };
        Some((address, code.map_err(String::as_str)))
    }
}

impl<'a> Shown<'a> {
    /// Identity of the code.
    pub fn hash(self) -> u64 {
        match self {
            Shown::Clauses(code) => code.identity.hash,
            Shown::Words(words) => words.hash,
        }
    }

    /// Bytes of the code.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Shown::Clauses(code) => &code.bytes,
            Shown::Words(words) => &words.bytes,
        }
    }

    /// None on Valhall.
    pub fn clauses(self) -> Option<u32> {
        match self {
            Shown::Clauses(code) => Some(code.identity.clauses),
            Shown::Words(_) => None,
        }
    }

    /// Number of instructions.
    pub fn instructions(self) -> usize {
        match self {
            Shown::Clauses(code) => code.shader.instructions(),
            Shown::Words(words) => words.instructions(),
        }
    }

    /// Name of what is at an offset.
    pub fn place(self, offset: u64) -> String {
        match self {
            Shown::Clauses(_) => format!("clause_{}", offset / CLAUSE),
            Shown::Words(_) => format!("word {}", offset / Words::BYTES),
        }
    }

    /// By offset: clauses, or words up to a block's end or one of these offsets.
    pub fn pieces(self, cuts: impl IntoIterator<Item = u64>) -> Vec<(u64, String)> {
        match self {
            Shown::Clauses(code) => {
                let clauses = code.shader.clauses.iter().map(|placed| {
                    let text = ClauseText {
                        clause: &placed.clause,
                        offset: placed.offset,
                    };
                    (placed.offset.into(), text.to_string())
                });
                clauses.collect()
            }
            Shown::Words(words) => {
                let mut starts: BTreeSet<u64> = words.blocks().collect();
                starts.extend(cuts);
                let mut pieces: Vec<(u64, String)> = Vec::new();
                for (at, line) in (0..)
                    .step_by(Words::BYTES as usize)
                    .zip(words.to_string().lines())
                {
                    match pieces.last_mut() {
                        Some((_, text)) if !starts.contains(&at) => {
                            *text = format!("{text}{line}\n")
                        }
                        _ => pieces.push((at, format!("{line}\n"))),
                    }
                }
                pieces
            }
        }
    }

    /// The tuple that reaches memory, from 0; none on Valhall.
    pub fn tuple(self, offset: u64) -> Option<usize> {
        let Shown::Clauses(code) = self else {
            return None;
        };
        let at = code.shader.index_of(u32::try_from(offset).ok()?)?;
        message(code.shader.clauses.get(at)?).map(|(index, _)| index)
    }

    /// Instructions that reach memory: a clause's one; of a block, those that read or write as wanted.
    pub fn messages(self, offset: u64, writes: Option<bool>) -> Option<String> {
        match self {
            Shown::Clauses(code) => {
                let at = code.shader.index_of(u32::try_from(offset).ok()?)?;
                message(code.shader.clauses.get(at)?).map(|(_, text)| text)
            }
            Shown::Words(words) => {
                let found = words.accesses(offset).into_iter();
                let found = found.filter(|it| {
                    writes.is_none_or(|writes| match writes {
                        true => it.writes,
                        false => it.reads,
                    })
                });
                let mut texts: Vec<String> = found.map(|it| it.text).collect();
                if texts.len() > MOST {
                    texts.truncate(MOST);
                    texts.push("…".into());
                }
                (!texts.is_empty()).then(|| texts.join(" or "))
            }
        }
    }
}

fn message(placed: &Placed) -> Option<(usize, String)> {
    let clause = &placed.clause;
    let mut tuples = clause.tuples.iter().enumerate();
    let (index, tuple) = tuples.find(|(_, tuple)| {
        let instruction = tuple.instruction(Unit::Add);
        instruction.op.info().message.is_some()
    })?;
    let text = InstructionText {
        tuple,
        unit: Unit::Add,
        staging_register: clause.header.staging_register,
        origin: Some(placed.offset),
    };
    Some((index, text.to_string()))
}
