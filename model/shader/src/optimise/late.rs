// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiply-adds as late as possible, so that a sum's execute at once.
//!
//! Words loaded ahead are used in place. What may fault stays in order.

use super::flow::{RowSet, bit, reads, writes};
use crate::ir::micro::{Kind, MicroOp, Run};
use crate::operations::loops::copy;

pub(super) fn read_in_place(ops: &mut Vec<MicroOp>, live: RowSet) {
    for at in 0..ops.len() {
        let word = ops[at];
        if word.kind == Kind::Word
            && word.d != word.c
            && let Some(stays) = replace_reads(&mut ops[at + 1..], word.d, word.c, live)
        {
            ops[at].d = word.c;
            if stays {
                ops.push(MicroOp {
                    run: Run::Rows(copy),
                    a: word.c,
                    sources: 1,
                    kind: Kind::Copy,
                    ..word
                });
            }
        }
    }
}

/// Whether `from` is wanted at the end; `None` if a reader is unknown, and nothing changed.
fn replace_reads(ops: &mut [MicroOp], from: u16, to: u16, live: RowSet) -> Option<bool> {
    let mut stays = live & bit(from) != 0;
    let mut readers = Vec::new();
    for (at, op) in ops.iter().enumerate() {
        if reads(op)? & bit(from) != 0 {
            // A longer store takes consecutive rows.
            if op.kind == Kind::Store && op.m != 1 {
                return None;
            }
            readers.push(at);
        }
        if writes(op)? & bit(from) != 0 {
            stays = false;
            break;
        }
    }
    for at in readers {
        let op = &mut ops[at];
        let stored = (op.kind == Kind::Store).then_some(&mut op.d);
        let sources = [&mut op.a, &mut op.b, &mut op.c, &mut op.e];
        let sources = sources.into_iter().take(op.sources.into()).chain(stored);
        for source in sources.filter(|source| **source == from) {
            *source = to;
        }
    }
    Some(stays)
}

#[derive(Default)]
struct Waiting {
    words: Vec<MicroOp>,
    loaded: RowSet,
    sums: Vec<MicroOp>,
    factors: RowSet,
    grown: RowSet,
    several: bool,
}

impl Waiting {
    fn hold(&self, op: &MicroOp) -> bool {
        let (Some(read), Some(written)) = (reads(op), writes(op)) else {
            return true;
        };
        if matches!(op.run, Run::Message(_)) && op.kind != Kind::Ahead {
            return true;
        }
        let changed = self.loaded | self.grown;
        written & (changed | self.factors) != 0 || read & changed != 0
    }

    /// Lets a word wait; it comes before waiting sums. False: it cannot wait.
    fn add_word(&mut self, op: &MicroOp) -> bool {
        let (place, address) = (bit(op.d), bit(op.a) | bit(op.b));
        if (place | address) & self.grown != 0 || place & self.factors != 0 {
            return false;
        }
        self.words.push(*op);
        self.loaded |= place | address;
        true
    }

    /// Sums of different rows may wait in any order.
    fn add_sum(&mut self, op: &MicroOp) -> bool {
        let (sum, factors) = (bit(op.d), bit(op.a) | bit(op.b));
        if factors & (self.grown | sum) != 0 || sum & self.factors != 0 {
            return false;
        }
        self.several |= sum & self.grown != 0;
        self.sums.push(*op);
        self.factors |= factors;
        self.grown |= sum;
        true
    }

    fn release(&mut self, to: &mut Vec<MicroOp>) {
        to.append(&mut self.words);
        if self.several {
            self.sums.sort_by_key(|sum| sum.d);
        }
        to.append(&mut self.sums);
        *self = Waiting::default();
    }
}

pub(super) fn postpone(ops: &[MicroOp]) -> Vec<MicroOp> {
    let mut ordered = Vec::with_capacity(ops.len());
    let mut waiting = Waiting::default();
    for op in ops {
        let add = match op.kind {
            Kind::Word if op.d == op.c => Waiting::add_word,
            Kind::MultiplyAdd if op.d == op.c => Waiting::add_sum,
            _ => {
                if waiting.hold(op) {
                    waiting.release(&mut ordered);
                }
                ordered.push(*op);
                continue;
            }
        };
        if !add(&mut waiting, op) {
            waiting.release(&mut ordered);
            if !add(&mut waiting, op) {
                ordered.push(*op);
            }
        }
    }
    waiting.release(&mut ordered);
    ordered
}
