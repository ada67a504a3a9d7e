// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executes micro-operations singly, and notes what depends on memory.

use std::collections::HashMap;

use super::pages::Reached;
use super::private::Private;
use super::track::{Step, Track};
use crate::core::{Core, Counts, Done, Trouble};
use crate::engine::batch::{Batch, Execute};
use crate::ir::micro::{Kind, MicroOp, Run};
use crate::ir::{Clause, Condition, Program, State, special};
use crate::operations::loops::copy;
use crate::operations::memory::address;
use crate::operations::planned::{Load, Store, Wanted};
use crate::optimise::fuse::fuse;
use crate::rows::{LANES, Rows};

/// Inactive lanes included.
fn set(op: &MicroOp, rows: &mut Rows) {
    rows.set(op.d, op.a);
}

#[derive(Debug, Default)]
struct Contents {
    depends: Vec<bool>,
    known: HashMap<[u32; LANES], u16>,
    lanes: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    steps: Vec<Step>,
    operations: Vec<MicroOp>,
    pending: Vec<MicroOp>,
    reached: Reached,
    pages_before: (usize, usize),
    private: Private,
    contents: Vec<Contents>,
    batch: usize,
    bytes: usize,
    room: usize,
    refused: bool,
}

impl Recorder {
    pub(super) fn new(batches: usize, reached: Reached, room: usize) -> Recorder {
        Recorder {
            steps: Vec::new(),
            operations: Vec::new(),
            pending: Vec::new(),
            pages_before: reached.count(),
            reached,
            private: Private::default(),
            contents: std::iter::repeat_with(Contents::default)
                .take(batches)
                .collect(),
            batch: 0,
            bytes: 0,
            room,
            refused: false,
        }
    }

    /// Track and known pages; without a track, batches and pages stay as they were.
    pub(super) fn track(
        mut self,
        (counts, wanted): (Counts, bool),
        batches: &mut [Batch],
    ) -> (Option<Track>, Reached) {
        if self.refused || !wanted {
            for (batch, contents) in batches.iter_mut().zip(&self.contents) {
                let added = contents.known.len();
                batch.rows.truncate(batch.rows.count() - added);
            }
            self.reached.truncate(self.pages_before);
            return (None, self.reached);
        }
        self.flush();
        self.steps.shrink_to_fit();
        self.operations.shrink_to_fit();
        let track = Track {
            steps: self.steps,
            operations: self.operations,
            counts,
        };
        (Some(track), self.reached)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            let start = self.operations.len();
            self.operations.extend(fuse(&self.pending));
            self.pending.clear();
            self.steps
                .push(Step::Operations(start..self.operations.len()));
        }
    }

    fn step(&mut self, step: Step) {
        self.flush();
        self.grow(step.bytes());
        self.steps.push(step);
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.refused |= self.is_too_long();
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.bytes > self.room
    }

    fn operation(&mut self, operation: MicroOp) {
        self.pending.push(operation);
        // `fuse` may add another one that stands for it.
        self.grow(2 * size_of::<MicroOp>());
    }

    fn depends(&self, row: u16) -> bool {
        let depends = &self.contents[self.batch].depends;
        depends.get(usize::from(row)).copied().unwrap_or(false)
    }

    fn mark(&mut self, row: u16, depends: bool) {
        if let Some(place) = self.contents[self.batch].depends.get_mut(usize::from(row)) {
            *place = depends;
        }
    }

    /// Row where a track finds this row's value.
    fn source(&mut self, row: u16, rows: &mut Rows) -> u16 {
        if row >= special::CONSTANT || self.depends(row) {
            return row;
        }
        let known = &mut self.contents[self.batch].known;
        let value = rows.get(row).0;
        if let Some(&row) = known.get(&value) {
            return row;
        }
        let Ok(place) = u16::try_from(rows.count()) else {
            self.refused = true;
            return row;
        };
        rows.push_row(&value);
        known.insert(value, place);
        self.grow(2 * size_of_val(&value));
        place
    }

    fn choose_lanes(&mut self, rows: &Rows) {
        let (mask, live) = (rows.mask(), rows.live());
        if self.contents[self.batch].lanes != Some((mask, live)) {
            self.contents[self.batch].lanes = Some((mask, live));
            self.step(Step::Lanes { mask, live });
        }
    }

    /// For a result that depends on memory. Inactive lanes keep the row: a known value must be put there.
    fn begin_result(&mut self, row: u16, rows: &mut Rows) {
        if rows.merges(row) && !self.depends(row) {
            let from = self.source(row, rows);
            self.operation(MicroOp {
                run: Run::Rows(set),
                d: row,
                a: from,
                b: 0,
                c: 0,
                e: 0,
                m: 0,
                sources: 1,
                kind: Kind::Plain,
                part: 0,
            });
        }
        self.mark(row, true);
    }

    fn on_rows(&mut self, op: &MicroOp, rows: &mut Rows) {
        let mut sources = [op.a, op.b, op.c, op.e];
        let count = usize::from(op.sources).min(sources.len());
        let depends = sources[..count].iter().any(|row| self.depends(*row));
        let merged = rows.merges(op.d) && self.depends(op.d);
        if !depends && !merged {
            return self.mark(op.d, false);
        }
        self.choose_lanes(rows);
        for source in &mut sources[..count] {
            *source = self.source(*source, rows);
        }
        self.begin_result(op.d, rows);
        let [a, b, c, e] = sources;
        self.operation(MicroOp { a, b, c, e, ..*op });
    }

    fn addresses(&self, op: &MicroOp, offset: u16, rows: &Rows) -> Option<[u64; LANES]> {
        if self.depends(op.a) || self.depends(op.b) {
            return None;
        }
        let (low, high) = (rows.get(op.a), rows.get(op.b));
        let at = |lane| address(low, high, lane).wrapping_add(offset.into());
        Some(std::array::from_fn(at))
    }

    fn load(&mut self, op: &MicroOp, (offset, bytes, to): (u16, usize, u16), rows: &mut Rows) {
        let Some(addresses) = self.addresses(op, offset, rows) else {
            self.refused = true;
            return;
        };
        let wanted = Wanted::active(rows, &addresses, bytes, to);
        let results = to..to + bytes.div_ceil(4) as u16;
        let merged = results
            .clone()
            .any(|row| rows.merges(row) && self.depends(row));
        if !merged && self.private.knows(&wanted) {
            self.reached.has_private = true;
            return results.for_each(|row| self.mark(row, false));
        }
        let before = self.reached.bytes();
        let Some(plan) = Load::plan(&wanted, &mut self.reached.read) else {
            self.refused = true;
            return;
        };
        self.grow(self.reached.bytes() - before);
        self.choose_lanes(rows);
        results.for_each(|row| self.begin_result(row, rows));
        self.step(Step::Load(plan));
    }

    fn store(&mut self, op: &MicroOp, rows: &mut Rows, core: &Core<'_>) {
        let Some(addresses) = self.addresses(op, 0, rows) else {
            self.refused = true;
            return;
        };
        let wanted = Wanted::active(rows, &addresses, op.c.into(), op.d);
        let last = wanted.bytes.div_ceil(4).clamp(1, 4) as u16 - 1;
        let words = [0, 1, 2, 3].map(|word: u16| op.d + word.min(last));
        let depends = words.iter().any(|row| self.depends(*row));
        self.private.store(&wanted, !depends, rows, core.grid);
        let from = words.map(|row| self.source(row, rows));
        let before = self.reached.bytes();
        match Store::plan(&wanted, from, &mut self.reached.written) {
            Some(plan) => self.step(Step::Store(plan)),
            None => self.refused = true,
        }
        self.grow(self.reached.bytes() - before);
    }

    fn record(&mut self, op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
        let run = match op.run {
            Run::Rows(run) => {
                if !self.refused {
                    self.on_rows(op, rows);
                }
                run(op, rows);
                return Ok(());
            }
            Run::Message(run) => run,
            Run::Several(_) | Run::Done(_) => return Ok(()),
        };
        if self.refused {
            return run(op, rows, core);
        }
        match op.kind {
            Kind::Load => self.load(op, (0, op.c.into(), op.d), rows),
            Kind::Store => self.store(op, rows, core),
            Kind::Word if core.ahead >> op.m & 1 == 0 => self.load(op, (op.e, 4, op.d), rows),
            Kind::Word if op.c == op.d => {}
            Kind::Word => {
                let copied = MicroOp {
                    run: Run::Rows(copy),
                    a: op.c,
                    sources: 1,
                    kind: Kind::Copy,
                    ..*op
                };
                self.on_rows(&copied, rows);
            }
            Kind::Ahead => {
                // Executed first, as only then it shows whether it loads; it does not overwrite its address.
                run(op, rows, core)?;
                if core.ahead >> op.m & 1 == 1 {
                    self.load(op, (op.e, 4 * usize::from(op.c), op.d), rows);
                }
                return Ok(());
            }
            _ => self.refused = true,
        }
        run(op, rows, core)
    }
}

impl Execute for Recorder {
    fn switch(&mut self, batch: usize) {
        if self.batch != batch {
            self.step(Step::Batch(batch));
            self.batch = batch;
        }
    }

    fn execute(
        &mut self,
        rows: &mut Rows,
        program: &Program,
        clause: &Clause,
        core: &mut Core<'_>,
    ) -> Result<(), (Trouble, u8)> {
        let program_rows = usize::from(special::CONSTANT) + program.constants();
        let contents = &mut self.contents[self.batch];
        // Rows are known at first, as is what a thread begins with.
        contents.depends.resize(special::CONSTANT.into(), false);
        self.refused |= rows.count() < program_rows;
        core.spend(clause.count()).map_err(|trouble| (trouble, 0))?;
        for op in &program.ops[clause.ops.clone()] {
            let recorded = self.record(op, rows, core);
            recorded.map_err(|trouble| (trouble, op.part))?;
        }
        if let Some(branch) = clause.branch {
            self.refused |= match branch.condition {
                Condition::NonZero(row) | Condition::Any(row) | Condition::All(row) => {
                    self.depends(row)
                }
                Condition::Always | Condition::Diverged(_) => false,
            };
            self.refused |= clause.jumps();
        }
        match clause.state {
            State::Ready => Ok(()),
            State::Pending | State::Faulty(_) => {
                self.refused = true;
                clause.ending()
            }
        }
    }
}
