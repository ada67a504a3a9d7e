// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fusion of multiply-adds with a common factor or sum, of both words of sums, and of words
//! loaded ahead.
//!
//! The micro-operations stay after the one that stands for them, for inactive lanes.

use crate::ir::micro::{Kind, MicroOp, Run};
use crate::operations::{ahead, carries, halves, singles};
use crate::rows::Rows;
use crate::vectors;

const MOST: usize = 4;
const MOST_OF_SUM: usize = 16;
const MOST_WIDE: usize = 16;
const MOST_WORDS: usize = 256;

pub(crate) fn fuse(ops: &[MicroOp]) -> Vec<MicroOp> {
    let mut fused = Vec::with_capacity(ops.len());
    let mut rest = ops;
    while let Some(&first) = rest.first() {
        let alike = in_place(rest).max(of_sum(rest)).max(wide_sums(rest));
        if alike > 1 {
            let (these, others) = rest.split_at(alike);
            fused.push(stand_for(these));
            fused.extend(these);
            rest = others;
            continue;
        }
        let by_a = group(rest, first.a);
        let by_b = group(rest, first.b);
        let (count, common) = if by_b > by_a {
            (by_b, first.b)
        } else {
            (by_a, first.a)
        };
        let Some(run) = several(first.kind, count) else {
            fused.push(first);
            rest = &rest[1..];
            continue;
        };
        let (these, others) = rest.split_at(count);
        fused.push(MicroOp {
            run,
            m: count as u32,
            kind: Kind::Plain,
            ..first
        });
        fused.extend(these.iter().map(|op| match op {
            op if op.a == common => *op,
            op => MicroOp {
                a: op.b,
                b: op.a,
                ..*op
            },
        }));
        rest = others;
    }
    fused
}

fn in_place(ops: &[MicroOp]) -> usize {
    let is = |op: &&MicroOp| op.kind == Kind::Word && op.c == op.d;
    ops.iter().take(MOST_WORDS).take_while(is).count()
}

fn of_sum(ops: &[MicroOp]) -> usize {
    let Some(sum) = ops.first().map(|op| op.d) else {
        return 0;
    };
    let grows = |op: &&MicroOp| {
        op.kind == Kind::MultiplyAdd && [op.d, op.c] == [sum; 2] && ![op.a, op.b].contains(&sum)
    };
    match vectors::accumulates() {
        true => ops.iter().take(MOST_OF_SUM).take_while(grows).count(),
        false => 0,
    }
}

/// Micro-operations of leading 64-bit sums, two each.
fn wide_sums(ops: &[MicroOp]) -> usize {
    let is = |[low, high]: &&[MicroOp; 2]| {
        let [term, other, sum] = match high.kind {
            Kind::Carry => [high.b, high.a, high.c],
            Kind::Above if high.m == 1 => [high.a, high.a, high.b],
            _ => return false,
        };
        low.kind == Kind::Add
            && sum == low.d
            && [low.a, low.b].contains(&term)
            && ![term, other, high.d].contains(&low.d)
    };
    match vectors::accumulates() {
        true => {
            let pairs = ops.as_chunks().0.iter().take(MOST_WIDE / 2);
            2 * pairs.take_while(is).count()
        }
        false => 0,
    }
}

fn stand_for(ops: &[MicroOp]) -> MicroOp {
    let (first, count) = (ops[0], ops.len());
    let (run, c, m) = match first.kind {
        Kind::Word => {
            let loads = ops.iter().fold(0, |loads, op| loads | 1 << op.m);
            (Run::Done(ahead::words_are_there), count as u16, loads)
        }
        Kind::Add => (Run::Several(add_wide), first.c, count as u32),
        _ => (Run::Several(add_all), first.c, count as u32),
    };
    let kind = Kind::Plain;
    MicroOp {
        run,
        c,
        m,
        kind,
        ..first
    }
}

/// Leading ones that add products with `common` to different rows, reading none that another writes.
fn group(ops: &[MicroOp], common: u16) -> usize {
    let Some(kind) = ops.first().map(|op| op.kind) else {
        return 0;
    };
    let grows = |op: &&MicroOp| {
        matches!(kind, Kind::MultiplyAdd | Kind::MultiplyAddLow)
            && op.kind == kind
            && op.d == op.c
            && op.d != op.a
            && op.d != op.b
            && (op.a == common || op.b == common)
    };
    let grown = ops.iter().take(MOST).take_while(grows).count();
    let apart = |count: &usize| {
        let these = &ops[..*count];
        these.iter().enumerate().all(|(at, op)| {
            let others = these.iter().enumerate().filter(|(other, _)| *other != at);
            others
                .into_iter()
                .all(|(_, other)| ![other.d, other.a, other.b].contains(&op.d))
        })
    };
    (0..=grown).rev().find(apart).unwrap_or(0)
}

fn several(kind: Kind, count: usize) -> Option<Run> {
    if !vectors::accumulates() {
        return None;
    }
    let low = kind == Kind::MultiplyAddLow;
    Some(Run::Several(match count {
        1 if low => accumulate_low::<1>,
        2 if low => accumulate_low::<2>,
        3 if low => accumulate_low::<3>,
        MOST if low => accumulate_low::<MOST>,
        1 => accumulate::<1>,
        2 => accumulate::<2>,
        3 => accumulate::<3>,
        MOST => accumulate::<MOST>,
        _ => return None,
    }))
}

fn accumulate<const N: usize>(ops: &[MicroOp], rows: &mut Rows) {
    if let Ok(ops) = ops.try_into()
        && rows.is_full()
        && singles::accumulate::<N>(ops, rows)
    {
        return;
    }
    one_by_one(ops, rows);
}

fn accumulate_low<const N: usize>(ops: &[MicroOp], rows: &mut Rows) {
    if let Ok(ops) = ops.try_into()
        && rows.is_full()
        && halves::accumulate::<N>(ops, rows)
    {
        return;
    }
    one_by_one(ops, rows);
}

fn add_all(ops: &[MicroOp], rows: &mut Rows) {
    if !(rows.is_full() && singles::add_all(ops, rows)) {
        one_by_one(ops, rows);
    }
}

fn add_wide(ops: &[MicroOp], rows: &mut Rows) {
    if !(rows.is_full() && carries::add_wide(ops, rows)) {
        one_by_one(ops, rows);
    }
}

fn one_by_one(ops: &[MicroOp], rows: &mut Rows) {
    for op in ops {
        if let Run::Rows(run) = op.run {
            run(op, rows);
        }
    }
}
