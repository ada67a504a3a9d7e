// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branches, and looks at other lanes.

use gpureplay_shader::alu::Compare;
use gpureplay_shader::alu::integer::Element;
use gpureplay_shader::alu::lanes::Part;
use gpureplay_shader::emit::elements::Elements;
use gpureplay_shader::emit::{CALL_COST, Emit};
use gpureplay_shader::ir::micro::Run;
use gpureplay_shader::ir::{Branch, Condition, Target};
use mali_isa::LaneOp;
use mali_isa::valhall::{ABSOLUTE, EQ, INACTIVE_RESULT, LANE_OPERATION, SUBGROUP_SIZE, WORD_BYTES};

use super::{Translator, Trap};
use crate::operations::warp;

impl Translator<'_> {
    pub(super) fn branch(&mut self) -> Result<(), Trap> {
        let distance = self.ins.branch();
        let distance = distance.ok_or_else(|| self.trap("lacks a target"))?;
        let bytes = distance.wrapping_mul(WORD_BYTES as i64);
        let target = self.address.wrapping_add_signed(bytes);
        let target = Target::Clause(self.program.number(target));
        let condition = self.tested()?;
        self.branch = Some(Branch { condition, target });
        Ok(())
    }

    pub(super) fn branch_to_address(&mut self) -> Result<(), Trap> {
        let ends = self.operand(1)?.code.constant() == Some(0);
        if !ends || self.ins.value(&ABSOLUTE) != Some(1) {
            return Err(self.trap("jumps to a place that it computes, which is not translated"));
        }
        self.branch = Some(Branch {
            condition: self.tested()?,
            target: Target::End,
        });
        Ok(())
    }

    fn tested(&mut self) -> Result<Condition, Trap> {
        let wanted = self.ins.value(&EQ) == Some(1);
        if wanted && self.operand(0)?.code.constant() == Some(0) {
            return Ok(Condition::Always);
        }
        let part = self.selected(0)?;
        if !matches!(part, Part::Word | Part::H0 | Part::H1) {
            return Err(self.trap("combines what it tests, which is not translated"));
        }
        let row = self.scalar(0, false)?;
        let (flag, zero) = (self.temporary()?, self.number(0));
        let how = if wanted { Compare::Eq } else { Compare::Ne };
        self.compare_integers(flag, [row, zero], Element::U32, how, 1);
        Ok(Condition::NonZero(flag))
    }

    fn group(&mut self) -> Result<u32, Trap> {
        self.program.sees_warp = true;
        Ok(match self.ins.named(&SUBGROUP_SIZE) {
            Some("subgroup2") => 1,
            Some("subgroup4") => 2,
            Some("subgroup8") => 3,
            Some("subgroup16") => 4,
            _ => return Err(self.trap("looks at a group whose size is not public")),
        })
    }

    pub(super) fn ballot(&mut self) -> Result<(), Trap> {
        let (d, a, log2) = (self.dest, self.source(0)?, self.group()?);
        self.emit(Run::Message(warp::ballot), d, [a, 0, 0, 0], log2);
        Ok(())
    }

    pub(super) fn lane_permute(&mut self) -> Result<(), Trap> {
        let (d, log2) = (self.dest, self.group()?);
        let (a, b) = (self.source(0)?, self.scalar(1, false)?);
        let how = match self.ins.named(&LANE_OPERATION) {
            Some("none") => LaneOp::None,
            Some("xor") => LaneOp::Xor,
            Some("accumulate") => LaneOp::Accumulate,
            Some("shift") => LaneOp::Shift,
            _ => return Err(self.trap("finds a lane in a way that is not public")),
        };
        let inactive = self.ins.named(&INACTIVE_RESULT).and_then(inactive_result);
        let inactive = inactive.ok_or_else(|| self.trap("gives what is not public"))?;
        let inactive = self.number(inactive);
        let m = warp::modifiers(log2, how);
        *self.lane_cost() += CALL_COST;
        self.emit(Run::Message(warp::permute), d, [a, b, inactive, 0], m);
        Ok(())
    }
}

fn inactive_result(name: &str) -> Option<u32> {
    Some(match name {
        "zero" => 0,
        "umax" => u32::MAX,
        "i1" => 1,
        "v2i1" => 0x1_0001,
        "smin" => 0x8000_0000,
        "smax" => 0x7fff_ffff,
        "v2smin" => 0x8000_8000,
        "v2smax" => 0x7fff_7fff,
        "v4smin" => 0x8080_8080,
        "v4smax" => 0x7f7f_7f7f,
        "f1" => 0x3f80_0000,
        "v2f1" => 0x3c00_3c00,
        "infn" => 0xff80_0000,
        "inf" => 0x7f80_0000,
        "v2infn" => 0xfc00_fc00,
        "v2inf" => 0x7c00_7c00,
        _ => return None,
    })
}
