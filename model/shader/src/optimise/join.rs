// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins clauses that always follow one another.
//!
//! The parts stay, for limits that may end between them. A joined clause counts as all, and its fault is a part's.

use super::flow::successors;
use crate::ir::micro::{Kind, MicroOp, Run};
use crate::ir::{Clause, Next, Program, State};

/// Lanes at other clauses wait while a joined one executes.
const MOST_PARTS: usize = 64;

pub(super) fn chains(program: &Program) -> Vec<Vec<u32>> {
    let clauses = &program.clauses;
    let mut ways = vec![0; clauses.len()];
    if let Some(first) = ways.first_mut() {
        *first = 1;
    }
    for next in clauses.iter().flat_map(successors) {
        ways[next] += 1;
    }
    let plain: Vec<bool> = clauses
        .iter()
        .map(|clause| is_plain(program, clause))
        .collect();
    let follows = |number: usize| match clauses[number] {
        Clause {
            branch: None,
            barrier: false,
            next: Next::Clause(next),
            ..
        } if plain[number] && plain[next as usize] && ways[next as usize] == 1 => Some(next),
        _ => None,
    };
    let mut inner = vec![false; clauses.len()];
    for next in (0..clauses.len()).filter_map(follows) {
        inner[next as usize] = true;
    }
    let heads = (0..clauses.len()).filter(|&number| !inner[number]);
    let chain = |head: usize| {
        let after = |&number: &u32| follows(number as usize);
        let parts = std::iter::successors(Some(head as u32), after);
        parts.take(MOST_PARTS).collect::<Vec<_>>()
    };
    heads.map(chain).filter(|parts| parts.len() > 1).collect()
}

fn is_plain(program: &Program, clause: &Clause) -> bool {
    let ops = program.ops[clause.ops.clone()].iter();
    let plain = |op: &MicroOp| {
        !matches!(op.run, Run::Message(_))
            || matches!(op.kind, Kind::Load | Kind::LoadUniform | Kind::Store)
    };
    matches!(clause.state, State::Ready) && ops.into_iter().all(plain)
}

pub(super) fn code(parts: &[u32], code: &[Vec<MicroOp>]) -> Vec<MicroOp> {
    let of = |(part, &number): (usize, &u32)| {
        let ops = code[number as usize].iter();
        ops.map(move |op| MicroOp {
            part: part as u8,
            ..*op
        })
    };
    parts.iter().enumerate().flat_map(of).collect()
}

pub(super) fn add(program: &mut Program, parts: Vec<u32>, ops: &[MicroOp]) {
    let start = program.ops.len();
    program.ops.extend(ops);
    let number = program.clauses.len() as u32;
    let of = |part: &u32| &program.clauses[*part as usize];
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return;
    };
    let joined = Clause {
        address: of(first).address,
        state: State::Ready,
        ops: start..program.ops.len(),
        next: of(last).next,
        branch: of(last).branch,
        barrier: of(last).barrier,
        fma: parts.iter().map(|part| of(part).fma).sum(),
        add: parts.iter().map(|part| of(part).add).sum(),
        messages: parts
            .iter()
            .flat_map(|part| of(part).messages.clone())
            .collect(),
        lane_cost: parts.iter().map(|part| of(part).lane_cost).sum(),
        joined: None,
        parts: Vec::new(),
    };
    let head = *first as usize;
    program.clauses[head].joined = Some(number);
    program.clauses.push(Clause { parts, ..joined });
}
