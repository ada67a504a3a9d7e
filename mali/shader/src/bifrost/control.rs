// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branches, barriers, looks at other lanes.

use gpureplay_shader::alu::half;
use gpureplay_shader::alu::integer::Element;
use gpureplay_shader::emit::common::Common;
use gpureplay_shader::emit::elements::Elements;
use gpureplay_shader::emit::{CALL_COST, Emit};
use gpureplay_shader::ir::micro::Run;
use gpureplay_shader::ir::{Branch, Condition, Target};
use mali_isa::{Combine, Fau, InactiveResult, LaneOp, Lanes, Operand, Subgroup};

use super::float::compare;
use super::{Translator, Trap};
use crate::operations::warp;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Half,
    Signed,
    Unsigned,
}

#[derive(Clone, Copy)]
pub(super) struct Operands {
    kind: Kind,
    narrow: bool,
    zero: bool,
}

impl Operands {
    pub(super) const FLOAT: Operands = Operands::of(Kind::Float);
    pub(super) const HALF: Operands = Operands::of(Kind::Half).narrow();
    pub(super) const SIGNED: Operands = Operands::of(Kind::Signed);
    pub(super) const UNSIGNED: Operands = Operands::of(Kind::Unsigned);

    const fn of(kind: Kind) -> Operands {
        Operands {
            kind,
            narrow: false,
            zero: false,
        }
    }

    pub(super) const fn narrow(self) -> Operands {
        Operands {
            narrow: true,
            ..self
        }
    }

    pub(super) const fn with_zero(self) -> Operands {
        Operands { zero: true, ..self }
    }
}

impl Translator<'_> {
    pub(super) fn branch(&mut self, operands: Operands) -> Result<(), Trap> {
        let a = self.compared(0, operands)?;
        let b = if operands.zero {
            self.number(0)
        } else {
            self.compared(1, operands)?
        };
        let flag = self.temporary()?;
        let how = compare(self.ins.compare());
        match operands.kind {
            Kind::Float | Kind::Half => self.compare_singles(flag, [a, b], how, 1),
            Kind::Signed => self.compare_integers(flag, [a, b], Element::S32, how, 1),
            Kind::Unsigned => self.compare_integers(flag, [a, b], Element::U32, how, 1),
        }
        let target = if operands.zero { 1 } else { 2 };
        self.branch_to(target, Condition::NonZero(flag))
    }

    pub(super) fn branch_combined(&mut self, operands: Operands) -> Result<(), Trap> {
        self.program.sees_warp = true;
        let a = self.compared(0, operands)?;
        let flag = self.temporary()?;
        self.copy(a, flag);
        let condition = match self.ins.combine() {
            Combine::Any => Condition::Any(flag),
            Combine::All => Condition::All(flag),
        };
        self.branch_to(1, condition)
    }

    pub(super) fn branch_diverged(&mut self, wanted: bool) -> Result<(), Trap> {
        self.program.sees_warp = true;
        self.branch_to(0, Condition::Diverged(wanted))
    }

    pub(super) fn jump(&mut self) -> Result<(), Trap> {
        self.branch_to(0, Condition::Always)
    }

    pub(super) fn wait(&mut self) -> Result<(), Trap> {
        self.barrier = true;
        Ok(())
    }

    fn compared(&mut self, index: usize, operands: Operands) -> Result<u16, Trap> {
        let Operands { kind, narrow, .. } = operands;
        let row = self.source(index)?;
        let lanes = match self.lanes(index) {
            Lanes::None if narrow => Lanes::H0,
            lanes => lanes,
        };
        let row = self.arranged(row, lanes, kind == Kind::Signed)?;
        if kind != Kind::Half {
            return Ok(row);
        }
        let to = self.temporary()?;
        map!(self, to, [row], |x| half::to_single(x as u16));
        Ok(to)
    }

    /// Source `index` has the low address word.
    fn branch_to(&mut self, index: usize, condition: Condition) -> Result<(), Trap> {
        let source = self
            .ins
            .sources()
            .get(index)
            .copied()
            .ok_or_else(|| self.trap("lacks a target"))?;
        let known = match self.tuple.operand(self.unit, source) {
            Some(Operand::FauLow(Fau::Constant {
                value, relative, ..
            })) => Some(relative.resolve(value, self.address) as u32),
            Some(Operand::FauHigh(Fau::Constant {
                value, relative, ..
            })) => Some((relative.resolve(value, self.address) >> 32) as u32),
            Some(operand) => operand.constant(),
            None => None,
        };
        let target = match known {
            Some(0) => Target::End,
            Some(low) => Target::Clause(
                self.program
                    .number(self.address & !0xffff_ffff | u64::from(low)),
            ),
            None => {
                let (row, kept) = (self.selected(source)?, self.temporary()?);
                self.copy(row, kept);
                Target::Row(kept)
            }
        };
        self.branch = Some(Branch { condition, target });
        Ok(())
    }

    fn group_log2(&mut self) -> u32 {
        self.program.sees_warp = true;
        match self.ins.subgroup() {
            Subgroup::Subgroup2 => 1,
            Subgroup::Subgroup4 => 2,
            Subgroup::Subgroup8 => 3,
            Subgroup::Subgroup16 => 4,
        }
    }

    pub(super) fn ballot(&mut self) -> Result<(), Trap> {
        let (d, a, log2) = (self.dest, self.source(0)?, self.group_log2());
        let fill = u32::from(self.ins.immediate("fill").unwrap_or(0));
        let run = Run::Message(warp::ballot);
        self.emit(run, d, [a, 0, 0, 0], log2 | fill << 8);
        Ok(())
    }

    pub(super) fn lane_permute_old(&mut self) -> Result<(), Trap> {
        self.program.sees_warp = true;
        let (d, a, b) = (self.dest, self.source(0)?, self.source(1)?);
        let m = warp::modifiers(2, LaneOp::None);
        self.emit(Run::Message(warp::permute), d, [a, b, 0, 0], m);
        Ok(())
    }

    pub(super) fn lane_permute(&mut self) -> Result<(), Trap> {
        let (d, log2) = (self.dest, self.group_log2());
        let (a, b) = (self.source(0)?, self.source(1)?);
        let inactive = match self.ins.inactive_result() {
            InactiveResult::Zero => 0,
            InactiveResult::Umax => u32::MAX,
            InactiveResult::I1 => 1,
            InactiveResult::V2i1 => 0x1_0001,
            InactiveResult::Smin => 0x8000_0000,
            InactiveResult::Smax => 0x7fff_ffff,
            InactiveResult::V2smin => 0x8000_8000,
            InactiveResult::V2smax => 0x7fff_7fff,
            InactiveResult::V4smin => 0x8080_8080,
            InactiveResult::V4smax => 0x7f7f_7f7f,
            InactiveResult::F1 => 0x3f80_0000,
            InactiveResult::V2f1 => 0x3c00_3c00,
            InactiveResult::Infn => 0xff80_0000,
            InactiveResult::Inf => 0x7f80_0000,
            InactiveResult::V2infn => 0xfc00_fc00,
            InactiveResult::V2inf => 0x7c00_7c00,
        };
        let inactive = self.number(inactive);
        let m = warp::modifiers(log2, self.ins.lane_op());
        self.lane_cost += CALL_COST;
        self.emit(Run::Message(warp::permute), d, [a, b, inactive, 0], m);
        Ok(())
    }
}
