// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader for one dispatch: push uniforms make much address arithmetic the same in every thread.
//!
//! A thread's known values and live rows follow from control flow alone, whatever other threads do. Loads, stores
//! and what looks at other lanes stay, and so do shaders with computed jumps.

use super::flow::{ROWS, RowSet, bit, condition, members, reads, successors, writes};
use super::fuse::fuse;
use super::{ahead, join, late};
use crate::ir::micro::{Kind, MicroOp, Run};
use crate::ir::{Condition, Constant, Program, special};
use crate::operations::loops::{self, copy};
use crate::rows::{REGISTERS, Rows};

/// Fewer threads do not earn it back in one dispatch. Debug builds, for tests, do it always.
pub(crate) const WORTH_IT: u64 = if cfg!(debug_assertions) { 1 } else { 8192 };

/// More take too long.
const MOST_OPS: usize = 1 << 14;

/// Nested loops need some rounds.
const MOST_STEPS: usize = 8 * MOST_OPS;

/// `None`: threads may differ.
type Value = Option<u32>;

pub(crate) fn specialised(program: &Program, uniforms: &[u32]) -> Option<Program> {
    if program.ops.len() > MOST_OPS || program.is_open() {
        return None;
    }
    let mut own = program.clone();
    specialise(&mut own, uniforms);
    own.own = true;
    Some(own)
}

fn specialise(program: &mut Program, uniforms: &[u32]) {
    let mut evaluator = Evaluator::new(uniforms);
    let Some(entries) = entry_values(program, &mut evaluator) else {
        return;
    };
    let mut code: Vec<Vec<MicroOp>> = Vec::with_capacity(program.clauses.len());
    for (index, entry) in entries.iter().enumerate() {
        let ops = own_ops(program, index);
        code.push(match entry {
            Some(entry) => rewrite(program, index, &ops, entry, &mut evaluator),
            None => ops,
        });
    }
    let live = live_at_ends(program, &code);
    if let (Some(ops), Some(live), Some(clause)) =
        (code.first(), live.first(), program.clauses.first())
    {
        // Rows written first need no first value.
        program.visible &= live_before(ops, live | condition(clause)) as u64;
    }
    program.ops.clear();
    for (index, (ops, live)) in code.iter_mut().zip(&live).enumerate() {
        let live = live | condition(&program.clauses[index]);
        sweep(ops, live);
        add_carries(ops, live);
        let start = program.ops.len();
        program.ops.extend(fuse(ops));
        program.clauses[index].ops = start..program.ops.len();
    }
    for parts in join::chains(program) {
        let last = parts.last().map_or(0, |&last| last as usize);
        let live = live[last] | condition(&program.clauses[last]);
        let mut ops = join::code(&parts, &code);
        sweep(&mut ops, live);
        add_carries(&mut ops, live);
        let zero = program.constant(Constant::Value(0));
        ahead::take_ahead(&mut ops, zero, |row| program.value(row, uniforms));
        late::read_in_place(&mut ops, live);
        sweep(&mut ops, live);
        join::add(program, parts, &fuse(&late::postpone(&ops)));
    }
}

fn own_ops(program: &Program, clause: usize) -> Vec<MicroOp> {
    let ops = &program.ops[program.clauses[clause].ops.clone()];
    let own = ops
        .iter()
        .filter(|op| !matches!(op.run, Run::Several(_) | Run::Done(_)));
    own.copied().collect()
}

struct Evaluator<'u> {
    rows: Rows,
    uniforms: &'u [u32],
}

impl Evaluator<'_> {
    fn new(uniforms: &[u32]) -> Evaluator<'_> {
        let mut rows = Rows::new(0, 1);
        rows.activate(u64::MAX, u64::MAX);
        Evaluator { rows, uniforms }
    }

    fn known(&self, values: &[Value; ROWS], row: u16, program: &Program) -> Value {
        match values.get(usize::from(row)) {
            Some(value) => *value,
            None => program.value(row, self.uniforms),
        }
    }

    fn result(&mut self, op: &MicroOp, values: &[Value; ROWS], program: &Program) -> Value {
        let Run::Rows(run) = op.run else { return None };
        let sources = [op.a, op.b, op.c, op.e];
        for (row, &source) in (1..).zip(&sources[..op.sources.into()]) {
            self.rows.get_mut(row).0[0] = self.known(values, source, program)?;
        }
        let (d, a, b, c, e) = (0, 1, 2, 3, 4);
        run(
            &MicroOp {
                d,
                a,
                b,
                c,
                e,
                ..*op
            },
            &mut self.rows,
        );
        Some(self.rows.get(0).0[0])
    }
}

fn step(
    op: &MicroOp,
    values: &mut [Value; ROWS],
    program: &Program,
    evaluator: &mut Evaluator<'_>,
) {
    match writes(op) {
        Some(rows) => {
            let result = evaluator.result(op, values, program);
            members(rows).for_each(|row| values[row] = result);
        }
        None => *values = [None; ROWS],
    }
}

/// At the clauses' starts; `None`: not reached.
fn entry_values(
    program: &Program,
    evaluator: &mut Evaluator<'_>,
) -> Option<Vec<Option<[Value; REGISTERS]>>> {
    let mut entries = vec![None; program.clauses.len()];
    *entries.first_mut()? = Some([None; REGISTERS]);
    let mut changed = vec![0];
    let mut steps = MOST_STEPS;
    while let Some(index) = changed.pop() {
        let mut values = [None; ROWS];
        values[..REGISTERS].copy_from_slice(&entries[index]?);
        let clause = program.clauses.get(index)?;
        steps = steps.checked_sub(clause.ops.len())?;
        for op in &program.ops[clause.ops.clone()] {
            if !matches!(op.run, Run::Several(_)) {
                step(op, &mut values, program, evaluator);
            }
        }
        for next in successors(clause) {
            let before = *entries.get(next)?;
            let mut after = [None; REGISTERS];
            after.copy_from_slice(&values[..REGISTERS]);
            if let Some(before) = before {
                for (after, before) in after.iter_mut().zip(before) {
                    *after = after.filter(|_| *after == before);
                }
            }
            if before != Some(after) {
                entries[next] = Some(after);
                changed.push(next);
            }
        }
    }
    Some(entries)
}

fn rewrite(
    program: &mut Program,
    index: usize,
    ops: &[MicroOp],
    entry: &[Value; REGISTERS],
    evaluator: &mut Evaluator<'_>,
) -> Vec<MicroOp> {
    let mut values = [None; ROWS];
    values[..REGISTERS].copy_from_slice(entry);
    let (mut copies, mut same): (RowSet, _) = (0, [0; ROWS]);
    let original = |row: u16, copies: RowSet, same: &[u16; ROWS]| {
        if bit(row) & copies == 0 {
            row
        } else {
            same[usize::from(row)]
        }
    };
    let mut rewritten = Vec::with_capacity(ops.len());
    for op in ops {
        let mut op = *op;
        if reads(&op).is_some() {
            let sources = [&mut op.a, &mut op.b, &mut op.c, &mut op.e];
            for source in sources.into_iter().take(op.sources.into()) {
                *source = match evaluator.known(&values, *source, program) {
                    Some(value) => program.constant(Constant::Value(value)),
                    None => original(*source, copies, &same),
                };
            }
        }
        let result = evaluator.result(&op, &values, program);
        let copied = match (result, op.kind) {
            (Some(value), _) => Some(program.constant(Constant::Value(value))),
            (None, Kind::Add) if program.value(op.a, evaluator.uniforms) == Some(0) => Some(op.b),
            (None, Kind::Add) if program.value(op.b, evaluator.uniforms) == Some(0) => Some(op.a),
            (None, Kind::Copy) => Some(op.a),
            _ => None,
        };
        if let Some(from) = copied {
            op = MicroOp {
                run: Run::Rows(copy),
                a: from,
                sources: 1,
                kind: Kind::Copy,
                ..op
            };
        }
        step(&op, &mut values, program, evaluator);
        let changed = writes(&op).unwrap_or(RowSet::MAX);
        copies &= !changed;
        copies &= !members(copies)
            .filter(|&row| changed & bit(same[row]) != 0)
            .fold(0, |stale, row| stale | 1 << row);
        if let (Some(from), None) = (copied, result)
            && from != op.d
        {
            same[usize::from(op.d)] = from;
            copies |= bit(op.d);
        }
        rewritten.push(op);
    }
    if let Some(branch) = &mut program.clauses[index].branch
        && let Condition::NonZero(row) = &mut branch.condition
    {
        *row = original(*row, copies, &same);
    }
    rewritten
}

fn live_before(ops: &[MicroOp], live: RowSet) -> RowSet {
    ops.iter()
        .rev()
        .fold(live, |live, op| match (reads(op), writes(op), op.run) {
            (Some(_), Some(writes), Run::Rows(_)) if writes & live == 0 => live,
            (Some(reads), Some(writes), _) => live & !writes | reads,
            _ => RowSet::MAX,
        })
}

fn live_at_ends(program: &Program, code: &[Vec<MicroOp>]) -> Vec<RowSet> {
    const REGISTER_ROWS: RowSet = (1 << REGISTERS) - 1;
    let mut ends = vec![0; code.len()];
    loop {
        let mut changed = false;
        for (index, clause) in program.clauses.iter().enumerate().rev() {
            let live = successors(clause).fold(0, |live, next| {
                let end = ends[next] | condition(&program.clauses[next]);
                live | live_before(&code[next], end) & REGISTER_ROWS
            });
            changed |= live != ends[index];
            ends[index] = live;
        }
        if !changed {
            return ends;
        }
    }
}

fn sweep(ops: &mut Vec<MicroOp>, live: RowSet) {
    let mut live = live;
    let mut kept: Vec<MicroOp> = Vec::with_capacity(ops.len());
    for op in ops.iter().rev() {
        let after = live;
        live = live_before(std::slice::from_ref(op), live);
        let idle = op.kind == Kind::Copy && op.a == op.d;
        let unread = writes(op).is_some_and(|rows| rows & after == 0);
        let dead = matches!(op.run, Run::Rows(_)) && (idle || unread);
        if !dead {
            kept.push(*op);
        }
    }
    kept.reverse();
    *ops = kept;
}

/// A comparison and its result's addition, as in 64-bit sums.
fn add_carries(ops: &mut Vec<MicroOp>, live: RowSet) {
    let mut at = 0;
    while at < ops.len() {
        let carry = ops[at].d;
        if ops[at].kind == Kind::Above
            && carry >= special::TEMPORARY
            && let Some(sum) = carry_use(&ops[at..], live)
        {
            let (compare, add) = (ops[at], ops[at + sum]);
            let other = if add.a == carry { add.b } else { add.a };
            ops[at + sum] = MicroOp {
                run: Run::Rows(loops::three(
                    #[inline(always)]
                    |_, x, a, b| x.wrapping_add(u32::from(a > b)),
                )),
                a: other,
                b: compare.a,
                c: compare.b,
                sources: 3,
                kind: Kind::Carry,
                ..add
            };
            ops.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Where the first comparison's result is added, if nothing else reads it and its operands stay.
fn carry_use(ops: &[MicroOp], live: RowSet) -> Option<usize> {
    let (compare, rest) = ops.split_first()?;
    let carry = bit(compare.d);
    let at = rest
        .iter()
        .position(|op| reads(op).is_none_or(|reads| reads & carry != 0))?;
    let (before, add) = (&rest[..at], &rest[at]);
    let compared = bit(compare.a) | bit(compare.b);
    let intact = before
        .iter()
        .all(|op| writes(op).is_some_and(|writes| writes & (compared | carry) == 0));
    let adds = add.kind == Kind::Add && (add.a == compare.d) != (add.b == compare.d);
    let read_later = add.d != compare.d && live_before(&rest[at + 1..], live) & carry != 0;
    (intact && adds && !read_later).then_some(at + 1)
}

#[cfg(test)]
mod tests;
