// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows read and written; successors of clauses.

use crate::ir::micro::{Kind, MicroOp, Run};
use crate::ir::{Clause, Condition, Next, Target, special};

pub(super) const ROWS: usize = special::CONSTANT as usize;

pub(super) type RowSet = u128;

pub(super) fn successors(clause: &Clause) -> impl Iterator<Item = usize> {
    let next = match clause.next {
        Next::Clause(index) => Some(index as usize),
        Next::End => None,
    };
    let jump = match clause.branch.map(|branch| branch.target) {
        Some(Target::Clause(index)) => Some(index as usize),
        _ => None,
    };
    next.into_iter().chain(jump)
}

pub(super) fn condition(clause: &Clause) -> RowSet {
    match clause.branch.map(|branch| branch.condition) {
        Some(Condition::NonZero(row) | Condition::Any(row) | Condition::All(row)) => bit(row),
        _ => 0,
    }
}

pub(super) fn bit(row: u16) -> RowSet {
    1u128.checked_shl(row.into()).unwrap_or(0)
}

pub(super) fn members(mut rows: RowSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let row = rows.trailing_zeros() as usize;
        rows &= rows.wrapping_sub(1);
        (row < ROWS).then_some(row)
    })
}

pub(super) fn reads(op: &MicroOp) -> Option<RowSet> {
    let sources = [op.a, op.b, op.c, op.e].into_iter();
    let named = sources
        .take(op.sources.into())
        .map(bit)
        .fold(0, |all, row| all | row);
    match (op.run, op.kind) {
        (Run::Message(_), Kind::Store) => Some(named | moved_rows(op)),
        (Run::Message(_), Kind::Load | Kind::LoadUniform | Kind::Ahead | Kind::Word)
        | (Run::Rows(_), _) => Some(named),
        _ => None,
    }
}

pub(super) fn moved_rows(op: &MicroOp) -> RowSet {
    (0..op.m as u16).fold(0, |all, word| all | bit(op.d + word))
}

pub(super) fn writes(op: &MicroOp) -> Option<RowSet> {
    match (op.run, op.kind) {
        (Run::Rows(_), _) => Some(bit(op.d)),
        (Run::Message(_), Kind::Store) => Some(0),
        (Run::Message(_), Kind::Load | Kind::LoadUniform) => Some(moved_rows(op)),
        (Run::Message(_), Kind::Ahead) => {
            Some((0..op.c).fold(0, |all, word| all | bit(op.d + word)))
        }
        (Run::Message(_), Kind::Word) => Some(bit(op.d)),
        _ => None,
    }
}
