// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes random clauses of micro-operations.

use fastrand::Rng;

use super::machine::EDGE;
use crate::alu::float;
use crate::ir::micro::{Kind, MicroOp, OnMemory, Run};
use crate::ir::{Branch, Clause, Condition, Constant, Next, Program, State, Target, special};
use crate::operations::loops::{self, copy};
use crate::operations::memory::{load, store};
use crate::optimise::fuse::fuse;
use crate::rows::LANES;
use crate::vectors;

const STORES: usize = 24;
pub(crate) const PAGES: usize = STORES * LANES * 16 / 4096;
pub(crate) const UNIFORMS: u16 = 4;

pub(crate) struct Writer<'a> {
    random: Rng,
    program: &'a mut Program,
    temporaries: Vec<u16>,
    out: u32,
    table: u32,
    stores: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(program: &'a mut Program, seed: u64, table: u64, out: u64) -> Self {
        program.clauses.clear();
        Writer {
            random: Rng::with_seed(seed),
            program,
            temporaries: Vec::new(),
            out: out as u32,
            table: table as u32,
            stores: 0,
        }
    }

    pub(crate) fn constant(&mut self, value: u32) -> u16 {
        self.program.constant(Constant::Value(value))
    }

    fn source(&mut self) -> u16 {
        match self.random.u32(..10) {
            0 => self.constant(0),
            1 => {
                let value = self.random.u32(..5);
                self.constant(value)
            }
            2 | 3 => {
                let word = self.random.u16(..UNIFORMS);
                self.program.constant(Constant::Uniform(word))
            }
            4 if self.random.u32(..2) == 0 => special::LANE_ID,
            4 | 5 if !self.temporaries.is_empty() => {
                let at = self.random.u32(..self.temporaries.len() as u32);
                self.temporaries[at as usize]
            }
            _ => self.random.u32(..10) as u16,
        }
    }

    fn destination(&mut self) -> u16 {
        if self.random.u32(..2) == 0 {
            return self.random.u32(..10) as u16;
        }
        let row = special::TEMPORARY + self.random.u32(..4) as u16;
        self.temporaries.push(row);
        row
    }

    pub(crate) fn push(&mut self, run: Run, kind: Kind, d: u16, sources: &[u16], m: u32) {
        let source = |at: usize| sources.get(at).copied().unwrap_or(0);
        self.program.ops.push(MicroOp {
            run,
            d,
            a: source(0),
            b: source(1),
            c: match kind {
                Kind::Load | Kind::Store => 4 * m as u16,
                _ => source(2),
            },
            e: source(3),
            m,
            sources: sources.len() as u8,
            kind,
            part: 0,
        });
    }

    fn op(&mut self) {
        let sources: [u16; 4] = std::array::from_fn(|_| self.source());
        let choice = self.random.u32(..12);
        let (run, kind, count, m) = match choice {
            0..3 => (loops::two(|_, a, b| a.wrapping_add(b)), Kind::Add, 2, 0),
            3 | 4 => (
                loops::two(|m, a, b| u32::from(a > b) & m),
                Kind::Above,
                2,
                1,
            ),
            5 => (copy as _, Kind::Copy, 1, 0),
            6 => (loops::two(|_, a, b| a ^ b), Kind::Plain, 2, 0),
            7 => (
                loops::three(|_, a, b, c| a.wrapping_mul(b).wrapping_add(c)),
                Kind::Plain,
                3,
                0,
            ),
            8 => (
                loops::four(|_, a, b, c, e| if a < b { c } else { e }),
                Kind::Plain,
                4,
                0,
            ),
            9 | 10 => {
                let run = if vectors::has_fused_multiply_add() {
                    loops::three(|_, a, b, c| float::fma(a, b, c))
                } else {
                    loops::three(|_, a, b, c| float::fma_portable(a, b, c))
                };
                for _ in 0..self.random.u32(..6) {
                    let (d, other) = (self.random.u32(..10) as u16, self.source());
                    let mut factors = [sources[0], other];
                    factors.rotate_left(self.random.u32(..2) as usize);
                    let [a, b] = factors;
                    self.push(Run::Rows(run), Kind::MultiplyAdd, d, &[a, b, d], 0);
                }
                (run, Kind::MultiplyAdd, 3, 0)
            }
            _ => return self.memory(sources[0]),
        };
        let d = self.destination();
        self.push(Run::Rows(run), kind, d, &sources[..count], m);
    }

    fn memory(&mut self, row: u16) {
        let (low, zero) = (special::TEMPORARY + 5, self.constant(0));
        let first = self.random.u32(..7) as u16;
        if self.random.u32(..2) == 0 || self.stores == STORES {
            let (mask, base) = (self.constant(0xff0), self.constant(self.table));
            let offset = loops::three(|_, row, mask, base| (row & mask).wrapping_add(base));
            self.push(Run::Rows(offset), Kind::Plain, low, &[row, mask, base], 0);
            let (run, words): (OnMemory, _) = match self.random.u32(..4) {
                0 => (load::<4>, 1),
                1 => (load::<8>, 2),
                2 => (load::<12>, 3),
                _ => (load::<16>, 4),
            };
            let d = first.min(10 - words);
            self.push(Run::Message(run), Kind::Load, d, &[low, zero], words.into());
            return;
        }
        if self.random.u32(..4) == 0 {
            self.lines(low, zero);
        }
        let (stride, base) = (self.constant(16), self.constant(self.out));
        let place =
            loops::three(|_, lane, stride, base| lane.wrapping_mul(stride).wrapping_add(base));
        let lane = special::LANE_ID;
        self.push(Run::Rows(place), Kind::Plain, low, &[lane, stride, base], 0);
        self.push(
            Run::Message(store::<16>),
            Kind::Store,
            first,
            &[low, zero],
            4,
        );
        self.out += 16 * LANES as u32;
        self.stores += 1;
    }

    fn lines(&mut self, low: u16, zero: u16) {
        let d = self.random.u32(..7) as u16;
        let (base, out) = (self.constant(self.table), self.constant(self.out));
        let [shift, mask] = match self.random.u32(..4) {
            0 => [3, !0],
            1 => [4, !0],
            2 => [0, 15],
            _ => [0, 31],
        };
        let (shift, mask) = (self.constant(shift), self.constant(mask));
        let place = loops::four(|_, lane, shift, mask, base| 16 * (lane >> shift & mask) + base);
        let lane = special::LANE_ID;
        self.push(
            Run::Rows(place),
            Kind::Plain,
            low,
            &[lane, shift, mask, base],
            0,
        );
        let (run, words): (OnMemory, _) = match self.random.u32(..3) {
            0 => (load::<4>, 1),
            1 => (load::<8>, 2),
            _ => (load::<16>, 4),
        };
        self.push(Run::Message(run), Kind::Load, d, &[low, zero], words);
        let each = 4 << self.random.u32(..3);
        let each = self.constant(each);
        let place = loops::three(|_, lane, each, base| lane * each + base);
        self.push(Run::Rows(place), Kind::Plain, low, &[lane, each, out], 0);
        self.push(Run::Message(store::<4>), Kind::Store, d, &[low, zero], 1);
    }

    /// Words behind one address, from 64-bit sums as of compilers; some continue the last.
    fn words(&mut self, row: u16) {
        let [low, high, sum, carry, last] = [6, 7, 8, 10, 11].map(|n| special::TEMPORARY + n);
        let (mask, zero) = (self.constant(0xfc), self.constant(0));
        let base = match self.random.u32(..16) {
            0 => self.constant(0x7000_0000),
            1 => self.constant(self.table + 0x2000 - 0xfc - 8),
            2..6 => self.constant(EDGE as u32 + 0xf00),
            6..10 => self.constant(self.table + 0xf80),
            _ => self.constant(self.table),
        };
        let place = loops::three(|_, row, mask, base| (row & mask).wrapping_add(base));
        self.push(Run::Rows(place), Kind::Plain, low, &[row, mask, base], 0);
        match self.random.u32(..2) {
            0 => self.push(Run::Rows(copy as _), Kind::Copy, high, &[zero], 0),
            _ => {
                let none = loops::two(|_, a, b| a ^ b);
                let lane = special::LANE_ID;
                self.push(Run::Rows(none), Kind::Plain, high, &[lane, lane], 0);
            }
        }
        let add = || Run::Rows(loops::two(|_, a, b| a.wrapping_add(b)));
        let above = || Run::Rows(loops::two(|m, a, b| u32::from(a > b) & m));
        let (mut before, mut offset) = ([low, high], 0);
        for _ in 0..2 + self.random.u32(..5) {
            let more = 4 * self.random.u32(..5);
            let from = match self.random.u32(..3) {
                // The last sum is kept in rows of its own.
                0 if before != [low, high] => {
                    offset += more;
                    before
                }
                _ => {
                    offset = more;
                    [low, high]
                }
            };
            let d = self.random.u32(..7) as u16;
            if more == 0 && from == [low, high] {
                self.push(Run::Message(load::<4>), Kind::Load, d, &[low, high], 1);
            } else {
                let bytes = match from {
                    [one, _] if one == low => offset,
                    _ => more,
                };
                let constant = self.constant(bytes);
                let mut terms = [from[0], constant];
                terms.rotate_left(self.random.u32(..2) as usize);
                self.push(add(), Kind::Add, sum, &terms, 0);
                self.push(above(), Kind::Above, carry, &[from[0], sum], 1);
                self.push(add(), Kind::Add, carry, &[carry, from[1]], 0);
                self.push(Run::Message(load::<4>), Kind::Load, d, &[sum, carry], 1);
                if self.random.u32(..2) == 0 {
                    self.push(Run::Rows(copy as _), Kind::Copy, last, &[sum], 0);
                    self.push(Run::Rows(copy as _), Kind::Copy, last + 1, &[carry], 0);
                    before = [last, last + 1];
                }
            }
            if self.random.u32(..4) == 0 {
                self.op();
            }
        }
    }

    /// The last clause also loads or stores six times.
    pub(crate) fn program(&mut self) {
        let count = 2 + self.random.u32(..5);
        for index in 0..count {
            let start = self.program.ops.len();
            self.temporaries.clear();
            for _ in 0..1 + self.random.u32(..10) {
                self.op();
            }
            if self.random.u32(..2) == 0 {
                let row = self.source();
                self.words(row);
            }
            let last = index == count - 1;
            if last {
                for _ in 0..6 {
                    self.stores = self.stores.min(STORES - 1);
                    self.memory(0);
                }
            }
            let condition = match self.random.u32(..5) {
                0 => Condition::Always,
                1 => Condition::Any(self.source()),
                2 => Condition::All(self.source()),
                _ => Condition::NonZero(self.source()),
            };
            let target = match self.random.u32(..8) {
                0 => Target::End,
                _ => Target::Clause(self.random.u32(..count)),
            };
            let branch = (self.random.u32(..3) > 0).then_some(Branch { condition, target });
            let end = self.program.ops.len();
            self.program.clauses.push(Clause {
                ops: start..end,
                next: if last {
                    Next::End
                } else {
                    Next::Clause(index + 1)
                },
                branch,
                state: State::Ready,
                ..Clause::pending(16 * u64::from(index) + 16)
            });
            let fused = fuse(&self.program.ops[start..]);
            self.program.ops.truncate(start);
            self.program.ops.extend(fused);
            self.program.clauses[index as usize].ops = start..self.program.ops.len();
        }
    }
}
