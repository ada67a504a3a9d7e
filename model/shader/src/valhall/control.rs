// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branches.

use mali_valhall::{EQ, WORD_BYTES};

use super::Translator;
use crate::alu::lanes::Part;
use crate::ir::{Branch, Condition, Target};
use crate::translate::Trap;

impl Translator<'_> {
    /// A branch that each thread decides: whether its source is zero or not.
    pub(super) fn branch(&mut self) -> Result<(), Trap> {
        let distance = self.ins.branch();
        let distance = distance.ok_or_else(|| self.trap("lacks a target"))?;
        let bytes = distance.wrapping_mul(WORD_BYTES as i64);
        let target = self.address.wrapping_add_signed(bytes);
        let target = Target::Clause(self.program.number(target));
        let wanted = self.ins.value(&EQ) == Some(1);
        if wanted && self.operand(0)?.code.constant() == Some(0) {
            let condition = Condition::Always;
            self.branch = Some(Branch { condition, target });
            return Ok(());
        }
        let part = self.selected(0)?;
        if !matches!(part, Part::Word | Part::H0 | Part::H1) {
            return Err(self.trap("combines what it tests, which is not translated"));
        }
        let row = self.integer_source(0, false)?;
        let flag = self.temporary()?;
        if wanted {
            map!(self, flag, [row], |x| u32::from(x == 0));
        } else {
            map!(self, flag, [row], |x| u32::from(x != 0));
        }
        let condition = Condition::NonZero(flag);
        self.branch = Some(Branch { condition, target });
        Ok(())
    }
}
