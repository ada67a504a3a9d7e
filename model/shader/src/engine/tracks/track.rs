// SPDX-License-Identifier: MIT OR Apache-2.0
//! A track: loads, stores and micro-operations.

use std::ops::Range;

use gpureplay_memory::Page;

use super::pages::Resolved;
use crate::core::{Core, Counts};
use crate::engine::batch::Batch;
use crate::ir::micro::{MicroOp, Run};
use crate::operations::planned::{Load, Store};
use crate::rows::Rows;

#[derive(Debug)]
pub(super) enum Step {
    /// Batch of the steps that follow.
    Batch(usize),
    Lanes {
        mask: u64,
        live: u64,
    },
    Operations(Range<usize>),
    Load(Load),
    Store(Store),
}

impl Step {
    pub(super) fn bytes(&self) -> usize {
        let behind = match self {
            Step::Load(load) => load.bytes(),
            Step::Store(store) => store.bytes(),
            _ => 0,
        };
        size_of::<Step>() + behind
    }
}

#[derive(Debug)]
pub(super) struct Track {
    pub(super) steps: Vec<Step>,
    pub(super) operations: Vec<MicroOp>,
    pub(super) counts: Counts,
}

impl Track {
    /// False: a limit is near and nothing was done; the clauses say what is wrong.
    pub(super) fn follow(
        &self,
        pages: &Resolved<'_>,
        batches: &mut [Batch],
        core: &mut Core<'_>,
    ) -> bool {
        let affordable = core.afford(self.counts.clauses());
        if affordable {
            core.add_counts(&self.counts);
            self.execute(&pages.read, &pages.written, batches, core);
        }
        affordable
    }

    fn execute(
        &self,
        read: &[Page<'_>],
        written: &[Page<'_>],
        batches: &mut [Batch],
        core: &mut Core<'_>,
    ) {
        let mut number = 0;
        let mut steps = self.steps.iter();
        while let Some(batch) = batches.get_mut(number) {
            let rows = &mut batch.rows;
            let next = loop {
                match steps.next() {
                    Some(Step::Batch(next)) => break *next,
                    Some(Step::Lanes { mask, live }) => rows.activate(*mask, *live),
                    Some(Step::Operations(range)) => {
                        execute(&self.operations[range.clone()], rows);
                    }
                    Some(Step::Load(load)) => load.run(read, rows, &mut core.results),
                    Some(Step::Store(store)) => store.run(written, rows),
                    None => return,
                }
            };
            number = next;
        }
    }
}

fn execute(mut operations: &[MicroOp], rows: &mut Rows) {
    while let [operation, rest @ ..] = operations {
        operations = rest;
        match operation.run {
            Run::Rows(run) => run(operation, rows),
            Run::Several(run) => {
                let (these, rest) = operations.split_at(operation.m as usize);
                operations = rest;
                run(these, rows);
            }
            Run::Message(_) | Run::Done(_) => {}
        }
    }
}
