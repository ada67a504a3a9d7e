// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branches, barriers, and instructions that look at other lanes.

use mali_isa::Mnemonic as M;
use mali_isa::{Combine, Fau, InactiveResult, LaneOp, Lanes, Operand, Subgroup};

use super::float::compare;
use super::{Translator, Trap};
use crate::alu::integer::Element;
use crate::alu::{Compare, Truth, float, half, integer};
use crate::ir::micro::Run;
use crate::ir::{Branch, Condition, Target};
use crate::operations::warp;

/// How a branch reads its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Half,
    Signed,
    Unsigned,
}

fn kind(mnemonic: M) -> Option<(Kind, bool, bool)> {
    // Kind, whether operands are 16 bits wide, whether the second operand is zero.
    Some(match mnemonic {
        M::BranchF32 => (Kind::Float, false, false),
        M::BranchF16 => (Kind::Half, true, false),
        M::BranchI32 | M::BranchU32 => (Kind::Unsigned, false, false),
        M::BranchS32 => (Kind::Signed, false, false),
        M::BranchI16 | M::BranchU16 => (Kind::Unsigned, true, false),
        M::BranchS16 => (Kind::Signed, true, false),
        M::BranchzF32 => (Kind::Float, false, true),
        M::BranchzF16 => (Kind::Half, true, true),
        M::BranchzI32 | M::BranchzU32 => (Kind::Unsigned, false, true),
        M::BranchzS32 => (Kind::Signed, false, true),
        M::BranchzI16 | M::BranchzU16 => (Kind::Unsigned, true, true),
        M::BranchzS16 => (Kind::Signed, true, true),
        _ => return None,
    })
}

impl Translator<'_> {
    pub(super) fn control(&mut self) -> Result<bool, Trap> {
        let mnemonic = self.ins.op.mnemonic();
        if let Some((kind, narrow, zero)) = kind(mnemonic) {
            let a = self.compared(0, kind, narrow)?;
            let b = if zero {
                self.number(0)
            } else {
                self.compared(1, kind, narrow)?
            };
            let flag = self.temporary()?;
            let how = compare(self.ins.compare());
            match kind {
                Kind::Float | Kind::Half => each_compare!(how, HOW => {
                    map!(self, flag, [a, b], |a, b| float::fcmp(a, b, HOW, Truth::I1));
                }),
                Kind::Signed => each_compare!(how, HOW => {
                    map!(self, flag, [a, b], |a, b| integer::icmp(a, b, Element::S32, HOW, Truth::I1));
                }),
                Kind::Unsigned => each_compare!(how, HOW => {
                    map!(self, flag, [a, b], |a, b| integer::icmp(a, b, Element::U32, HOW, Truth::I1));
                }),
            }
            return self.branch_to(if zero { 1 } else { 2 }, Condition::NonZero(flag));
        }
        match mnemonic {
            M::Jump => self.branch_to(0, Condition::Always),
            M::BranchcI16 | M::BranchcI32 => {
                self.program.sees_warp = true;
                let a = self.compared(0, Kind::Unsigned, mnemonic == M::BranchcI16)?;
                let flag = self.temporary()?;
                self.copy(a, flag);
                let condition = match self.ins.combine() {
                    Combine::Any => Condition::Any(flag),
                    Combine::All => Condition::All(flag),
                };
                self.branch_to(1, condition)
            }
            M::BranchDiverg | M::BranchNoDiverg => {
                self.program.sees_warp = true;
                let condition = Condition::Diverged(mnemonic == M::BranchDiverg);
                self.branch_to(0, condition)
            }
            M::Barrier => {
                self.barrier = true;
                Ok(true)
            }
            M::ClperI32 | M::ClperOldI32 | M::Wmask => {
                self.across(mnemonic)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// An operand of a branch, 32 bits wide.
    fn compared(&mut self, index: usize, kind: Kind, narrow: bool) -> Result<u16, Trap> {
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

    /// Ends the clause with a branch to the clause whose low address word source `index` holds.
    fn branch_to(&mut self, index: usize, condition: Condition) -> Result<bool, Trap> {
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
        Ok(true)
    }

    /// Instructions that look at other lanes of the warp.
    fn across(&mut self, mnemonic: M) -> Result<(), Trap> {
        self.program.sees_warp = true;
        let d = self.dest;
        let log2 = match self.ins.subgroup() {
            Subgroup::Subgroup2 => 1,
            Subgroup::Subgroup4 => 2,
            Subgroup::Subgroup8 => 3,
            Subgroup::Subgroup16 => 4,
        };
        if mnemonic == M::Wmask {
            let a = self.source(0)?;
            let fill = u32::from(self.ins.immediate("fill").unwrap_or(0));
            self.emit(
                Run::Message(warp::ballot),
                d,
                [a, 0, 0, 0],
                log2 | fill << 8,
            );
            return Ok(());
        }
        let (a, b) = (self.source(0)?, self.source(1)?);
        if mnemonic == M::ClperOldI32 {
            self.emit(
                Run::Message(warp::permute),
                d,
                [a, b, 0, 0],
                warp::modifiers(2, LaneOp::None),
            );
            return Ok(());
        }
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
        self.emit(
            Run::Message(warp::permute),
            d,
            [a, b, inactive, 0],
            warp::modifiers(log2, self.ins.lane_op()),
        );
        Ok(())
    }
}
