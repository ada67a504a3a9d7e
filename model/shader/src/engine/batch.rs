// SPDX-License-Identifier: MIT OR Apache-2.0
//! A batch of lanes: who executes which clause next.
//!
//! Lanes at one clause execute together. When they disagree, the lowest address goes first: compilers lay blocks
//! out in program order, so lanes that branched ahead wait where paths meet.

use std::sync::Arc;

use crate::control::DECODING_COST;
use crate::core::{Core, Trouble};
use crate::ir::micro::Run;
use crate::ir::{Branch, Clause, Condition, Next, Program, Target};
use crate::rows::{Rows, lanes};
use crate::{FaultKind, ShaderFault, load};

const MOST_CLAUSES: usize = 1 << 17;

/// Per lane, in sixteenths of a clause.
const JUMP_COST: u32 = 32;

#[derive(Clone, Copy, Debug)]
struct Group {
    address: u64,
    clause: u32,
    mask: u64,
}

pub(crate) trait Execute {
    fn switch(&mut self, _batch: usize) {}

    /// An error has the part of a joined clause that met the trouble.
    fn execute(
        &mut self,
        rows: &mut Rows,
        program: &Program,
        clause: &Clause,
        core: &mut Core<'_>,
    ) -> Result<(), (Trouble, u8)>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plainly;

impl Execute for Plainly {
    #[inline(always)]
    fn execute(
        &mut self,
        rows: &mut Rows,
        program: &Program,
        clause: &Clause,
        core: &mut Core<'_>,
    ) -> Result<(), (Trouble, u8)> {
        core.spend(clause.count()).map_err(|trouble| (trouble, 0))?;
        let mut ops = &program.ops[clause.ops.clone()];
        while let [op, rest @ ..] = ops {
            ops = rest;
            match op.run {
                Run::Rows(run) => run(op, rows),
                Run::Several(run) => {
                    let (these, rest) = ops.split_at(op.m as usize);
                    ops = rest;
                    run(these, rows);
                }
                Run::Done(run) => {
                    if run(op, rows, core) {
                        ops = &ops[op.c.into()..];
                    }
                }
                Run::Message(run) => {
                    if let Err(trouble) = run(op, rows, core) {
                        return Err((trouble, op.part));
                    }
                }
            }
        }
        clause.ending()
    }
}

#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) rows: Rows,
    live: u64,
    /// Highest address first.
    runnable: Vec<Group>,
    waiting: Vec<Group>,
}

impl Batch {
    pub(crate) fn new(rows: Rows) -> Batch {
        Batch {
            rows,
            live: 0,
            runnable: Vec::new(),
            waiting: Vec::new(),
        }
    }

    pub(crate) fn start(&mut self, program: &Program, mask: u64) {
        self.live = mask;
        self.runnable.clear();
        self.waiting.clear();
        if mask != 0 {
            self.runnable.push(Group {
                address: program.entry,
                clause: 0,
                mask,
            });
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn release(&mut self) {
        for group in std::mem::take(&mut self.waiting) {
            self.park(group);
        }
    }

    fn park(&mut self, group: Group) {
        if group.mask == 0 {
            return;
        }
        let at = self
            .runnable
            .partition_point(|other| other.address > group.address);
        match self.runnable.get_mut(at) {
            Some(other) if other.address == group.address => other.mask |= group.mask,
            _ => self.runnable.insert(at, group),
        }
    }

    /// Until every lane has ended or waits at a barrier.
    pub(crate) fn run(
        &mut self,
        program: &mut Arc<Program>,
        core: &mut Core<'_>,
        executor: &mut impl Execute,
    ) -> Result<(), Box<ShaderFault>> {
        program.complete(&mut self.rows, &core.uniforms);
        while let Some(mut group) = self.runnable.pop() {
            self.rows.activate(group.mask, self.live);
            loop {
                if program.clauses[group.clause as usize].is_pending() {
                    self.load(group.clause, program, core)?;
                }
                if let Some(joined) = program.clauses[group.clause as usize].joined
                    && core.has(program.clauses[joined as usize].count())
                {
                    group.clause = joined;
                }
                let clause = &program.clauses[group.clause as usize];
                core.count(group.clause, self.rows.active_count(), clause);
                let executed = executor.execute(&mut self.rows, program, clause, core);
                if let Err((trouble, part)) = executed {
                    return Err(self.fault(program, group.clause, (trouble, part), core));
                }
                let Some(next) = self.advance(group, program, core)? else {
                    break;
                };
                if next.mask != group.mask {
                    self.park(next);
                    break;
                }
                group = next;
                match self.runnable.last() {
                    Some(other) if other.address <= group.address => {
                        self.park(group);
                        break;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn fault(
        &self,
        program: &Program,
        number: u32,
        (trouble, part): (Trouble, u8),
        core: &mut Core<'_>,
    ) -> Box<ShaderFault> {
        let clause = &program.clauses[number as usize];
        let parts = &clause.parts[..];
        let Some(&own) = parts.get(usize::from(part)) else {
            return clause.fault(trouble);
        };
        let lanes = self.rows.active_count();
        core.uncount(number, lanes, clause);
        for &number in &parts[..=usize::from(part)] {
            core.count(number, lanes, &program.clauses[number as usize]);
        }
        program.clauses[own as usize].fault(trouble)
    }

    #[cold]
    fn load(
        &mut self,
        number: u32,
        program: &mut Arc<Program>,
        core: &mut Core<'_>,
    ) -> Result<(), Box<ShaderFault>> {
        let program = Arc::make_mut(program);
        let spent = core.charge(DECODING_COST);
        spent.map_err(|trouble| program.clauses[number as usize].fault(trouble))?;
        load::clause(program, number, core.isa, &mut core.fetch);
        if let Some(probing) = &mut core.probing {
            probing.insert_into(program, number as usize);
        }
        if core.begin.is_some() && program.sees_warp {
            let text =
                "a shader of vertices or fragments that looks at other threads is not modelled";
            let trouble = Trouble::new(FaultKind::InvalidData, 0, text);
            return Err(program.clauses[number as usize].fault(trouble));
        }
        program.complete(&mut self.rows, &core.uniforms);
        Ok(())
    }

    #[inline(always)]
    fn advance(
        &mut self,
        group: Group,
        program: &mut Arc<Program>,
        core: &mut Core<'_>,
    ) -> Result<Option<Group>, Box<ShaderFault>> {
        let clause = &program.clauses[group.clause as usize];
        let (next, barrier, branch) = (clause.next, clause.barrier, clause.branch);
        let mut fall = group.mask;
        let mut jump = None;
        if let Some(Branch { condition, target }) = branch {
            let taken = match condition {
                Condition::Always => group.mask,
                Condition::NonZero(row) => self.rows.nonzero(row),
                other => self.agreed(other, group.mask, core),
            };
            fall &= !taken;
            match target {
                Target::Clause(index) if taken != 0 => {
                    let address = program.clauses[index as usize].address;
                    jump = Some(Group {
                        address,
                        clause: index,
                        mask: taken,
                    });
                }
                Target::End => self.live &= !taken,
                Target::Row(row) if taken != 0 => {
                    core.lane_by_lane(taken.count_ones().into(), JUMP_COST);
                    self.scatter(program, group, taken, row)?;
                }
                _ => {}
            }
        }
        let on = match next {
            _ if fall == 0 => None,
            Next::End => {
                self.live &= !fall;
                None
            }
            Next::Clause(index) => {
                let address = program.clauses[index as usize].address;
                Some(Group {
                    address,
                    clause: index,
                    mask: fall,
                })
            }
        };
        if barrier {
            self.waiting.extend(on);
            return Ok(None);
        }
        Ok(match (jump, on) {
            (Some(jump), Some(on)) => {
                self.park(jump);
                Some(on)
            }
            (jump, on) => jump.or(on),
        })
    }

    #[cold]
    fn agreed(&self, condition: Condition, mask: u64, core: &Core<'_>) -> u64 {
        let size = core.warp_lanes;
        let first = u64::MAX >> (64 - size);
        let warps = (0..64).step_by(size as usize).map(|at| first << at);
        let takes = |warp: &u64| match condition {
            Condition::Any(row) => self.rows.nonzero(row) & warp != 0,
            Condition::All(row) => self.rows.nonzero(row) & warp == mask & warp,
            Condition::Diverged(wanted) => (self.live & warp != mask & warp) == wanted,
            Condition::Always | Condition::NonZero(_) => false,
        };
        warps
            .filter(takes)
            .fold(0, |taken, warp| taken | mask & warp)
    }

    /// Lanes go on at the address whose low word is in `row`.
    #[cold]
    fn scatter(
        &mut self,
        program: &mut Arc<Program>,
        from: Group,
        taken: u64,
        row: u16,
    ) -> Result<(), Box<ShaderFault>> {
        let program = Arc::make_mut(program);
        for lane in lanes(taken) {
            let low = self.rows.get(row).0[lane];
            if low == 0 {
                self.live &= !(1 << lane);
                continue;
            }
            if program.clauses.len() >= MOST_CLAUSES {
                let text = "the shader jumps to more places than any compiler makes";
                let trouble = Trouble::new(FaultKind::InvalidPc, 0, text);
                return Err(program.clauses[from.clause as usize].fault(trouble));
            }
            let address = from.address & !0xffff_ffff | u64::from(low);
            let clause = program.number(address);
            self.park(Group {
                address,
                clause,
                mask: 1 << lane,
            });
        }
        Ok(())
    }
}
