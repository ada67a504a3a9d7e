// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads neighbouring words at once.
//!
//! Compilers load a vector word by word, each from a 64-bit sum, if they may assume only a word's alignment. A load
//! ahead fills unused rows, from which the loads take words, or leaves all to them: faults stay where they were.

use std::collections::HashMap;

use super::flow::{ROWS, RowSet, bit, members, reads, writes};
use crate::ir::micro::{Kind, MicroOp, Run};
use crate::ir::special;
use crate::operations::ahead::{ahead, word};

const MOST_WORDS: u32 = 4;
const MOST_GROUPS: usize = 32;
/// Bytes from the base.
const FARTHEST: u32 = 0xfff;
const MOST_PLACES: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Access {
    at: usize,
    base: (Content, Content),
    rows: (u16, u16),
    offset: u32,
}

/// Equal numbers mean equal content.
type Content = u32;

struct Contents {
    zero: u16,
    rows: [Content; ROWS],
    next: Content,
    sums: HashMap<Content, Sum>,
    carries: HashMap<Content, Carry>,
}

#[derive(Clone, Copy, Debug)]
struct Sum {
    row: u16,
    low: Content,
    offset: u32,
}

/// `high`, plus 1 if the base's low word is above the sum's.
#[derive(Clone, Copy, Debug)]
struct Carry {
    row: u16,
    high: Content,
    low: Content,
    sum: Content,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    base: (Content, Content),
    /// `None`: the low word may be in no row.
    rows: (Option<u16>, u16),
    offset: u32,
}

impl Contents {
    fn new(zero: u16) -> Contents {
        Contents {
            zero,
            rows: std::array::from_fn(|row| row as Content),
            next: ROWS as Content,
            sums: HashMap::new(),
            carries: HashMap::new(),
        }
    }

    fn of(&self, row: u16) -> Content {
        let constant = Content::MAX - Content::from(row);
        *self.rows.get(usize::from(row)).unwrap_or(&constant)
    }

    fn forget(&mut self, rows: RowSet) {
        for row in members(rows) {
            self.rows[row] = self.next;
            self.next += 1;
        }
    }

    fn step(&mut self, op: &MicroOp, constant: &impl Fn(u16) -> Option<u32>) {
        let (a, b, c) = (self.of(op.a), self.of(op.b), self.of(op.c));
        self.forget(writes(op).unwrap_or(RowSet::MAX));
        let d = self.of(op.d);
        match op.kind {
            Kind::Copy => {
                if let Some(row) = self.rows.get_mut(usize::from(op.d)) {
                    *row = a;
                }
            }
            Kind::Add => {
                let of = |offset: u16, row: u16, low| {
                    let offset = constant(offset).filter(|_| constant(row).is_none())?;
                    let near = offset <= FARTHEST && offset.is_multiple_of(4);
                    near.then_some(Sum { row, low, offset })
                };
                let sum = of(op.b, op.a, a).or_else(|| of(op.a, op.b, b));
                self.sums.extend(sum.map(|sum| (d, sum)));
            }
            Kind::Carry => {
                let carry = Carry {
                    row: op.a,
                    high: a,
                    low: b,
                    sum: c,
                };
                self.carries.insert(d, carry);
            }
            Kind::Above => {
                let carry = Carry {
                    row: self.zero,
                    high: self.of(self.zero),
                    low: a,
                    sum: b,
                };
                self.carries.insert(d, carry);
            }
            _ => {}
        }
    }

    /// The nearest base first.
    fn places(&self, (low, high): (u16, u16)) -> Vec<Place> {
        let mut place = Place {
            base: (self.of(low), self.of(high)),
            rows: (Some(low), high),
            offset: 0,
        };
        let mut places = vec![place];
        while places.len() < MOST_PLACES {
            let (low, high) = place.base;
            let (Some(sum), Some(carry)) = (self.sums.get(&low), self.carries.get(&high)) else {
                break;
            };
            if carry.sum != low {
                break;
            }
            let (row, offset) = if carry.low == sum.low {
                (Some(sum.row), sum.offset)
            } else {
                // If both are sums of one base, the high word goes on from the other sum's.
                match self.sums.get(&carry.low) {
                    Some(other) if other.low == sum.low && other.offset <= sum.offset => {
                        (None, sum.offset - other.offset)
                    }
                    _ => break,
                }
            };
            place = Place {
                base: (carry.low, carry.high),
                rows: (row, carry.row),
                offset: place.offset + offset,
            };
            places.push(place);
        }
        places
    }

    fn rows(&self, place: &Place) -> Option<(u16, u16)> {
        let (low, high) = (place.rows.0?, place.rows.1);
        ((self.of(low), self.of(high)) == place.base).then_some((low, high))
    }
}

/// Row `zero` holds 0.
pub(super) fn take_ahead(ops: &mut Vec<MicroOp>, zero: u16, constant: impl Fn(u16) -> Option<u32>) {
    let runs = accesses(ops, zero, constant);
    let mut groups: Vec<Vec<Access>> = Vec::new();
    for run in runs {
        groups.extend(neighbours(run));
    }
    groups.sort_by_key(|group| group.iter().map(|access| access.at).min());
    groups.truncate(MOST_GROUPS);
    let mut used = ops.iter().fold(0, |used, op| {
        used | reads(op).unwrap_or(RowSet::MAX) | writes(op).unwrap_or(RowSet::MAX)
    });
    let mut heads: Vec<(usize, MicroOp)> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let offsets = group.iter().map(|access| access.offset);
        let least = offsets.clone().min().unwrap_or(0);
        let words = (offsets.max().unwrap_or(0) - least) / 4 + 1;
        let words = if words > 2 { MOST_WORDS as u16 } else { 2 };
        let Some(place) = free_rows(used, words) else {
            break;
        };
        used |= (0..words).fold(0, |rows, word| rows | bit(place + word));
        let Some(first) = group.iter().min_by_key(|access| access.at) else {
            continue;
        };
        let (a, b) = first.rows;
        let head = MicroOp {
            run: Run::Message(if words == 2 { ahead::<8> } else { ahead::<16> }),
            d: place,
            a,
            b,
            c: words,
            e: least as u16,
            m: number as u32,
            sources: 2,
            kind: Kind::Ahead,
            part: ops[first.at].part,
        };
        heads.push((first.at, head));
        for access in group {
            let op = &mut ops[access.at];
            *op = MicroOp {
                run: Run::Message(word),
                a: access.rows.0,
                b: access.rows.1,
                c: place + ((access.offset - least) / 4) as u16,
                e: access.offset as u16,
                m: number as u32,
                sources: 3,
                kind: Kind::Word,
                ..*op
            };
        }
    }
    heads.sort_by_key(|(at, _)| *at);
    for (at, head) in heads.into_iter().rev() {
        ops.insert(at, head);
    }
}

/// No store is between those of a list.
fn accesses(ops: &[MicroOp], zero: u16, constant: impl Fn(u16) -> Option<u32>) -> Vec<Vec<Access>> {
    let mut contents = Contents::new(zero);
    let (mut open, mut done): (Vec<Vec<Access>>, Vec<Vec<Access>>) = (Vec::new(), Vec::new());
    for (at, op) in ops.iter().enumerate() {
        match op.kind {
            Kind::Load if op.m == 1 && op.c == 4 => {
                let access = |place: &Place| {
                    let rows = contents.rows(place)?;
                    Some(Access {
                        at,
                        base: place.base,
                        rows,
                        offset: Some(place.offset).filter(|offset| *offset <= FARTHEST)?,
                    })
                };
                // The farthest base has most in common with other loads.
                let places = contents.places((op.a, op.b));
                if let Some(access) = places.iter().rev().find_map(access) {
                    match open.iter_mut().find(|run| run[0].base == access.base) {
                        Some(run) => run.push(access),
                        None => open.push(vec![access]),
                    }
                }
            }
            Kind::Load | Kind::LoadUniform => {}
            _ if matches!(op.run, Run::Message(_)) => done.append(&mut open),
            _ => {}
        }
        contents.step(op, &constant);
    }
    done.append(&mut open);
    done
}

fn neighbours(mut run: Vec<Access>) -> Vec<Vec<Access>> {
    run.sort_by_key(|access| (access.offset, access.at));
    run.dedup_by_key(|access| access.offset);
    let mut groups: Vec<Vec<Access>> = Vec::new();
    for access in run {
        match groups.last_mut() {
            Some(group) if access.offset - group[0].offset < 4 * MOST_WORDS => group.push(access),
            _ => groups.push(vec![access]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn free_rows(used: RowSet, count: u16) -> Option<u16> {
    let rows = |first: u16| (0..count).fold(0, |rows, row| rows | bit(first + row));
    (special::TEMPORARY..=special::CONSTANT - count).find(|&first| used & rows(first) == 0)
}
