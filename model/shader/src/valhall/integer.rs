// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic, shifts, comparisons and selection.

use mali_valhall::{CONDITION, CONSTANT, NOT_RESULT, Op, RESULT_TYPE, RHADD, SIGNED};

use super::Translator;
use crate::alu::integer::{self, Element};
use crate::alu::lanes::Part;
use crate::alu::shift::{self, Counts, Logic, Shift};
use crate::alu::{Compare, Truth};
use crate::ir::micro::Kind;
use crate::operations::loops;
use crate::translate::Trap;
use crate::translate::integer::equal_or_above;

impl Translator<'_> {
    /// Translates the instruction if it is one of these.
    pub(super) fn integer(&mut self, op: Op) -> Result<bool, Trap> {
        let d = self.dest;
        match op {
            Op::MovI32 => {
                let a = self.source(0)?;
                self.copy(a, d);
            }
            Op::IaddU32 | Op::IaddS32 => {
                let [a, b] = self.integers(op == Op::IaddS32)?;
                map!(self, d, [a, b], |a, b| a.wrapping_add(b));
                self.known_as(Kind::Add);
            }
            Op::IaddImmI32 => {
                let a = self.source(0)?;
                let constant = self.ins.value(&CONSTANT).unwrap_or(0) as u32;
                let b = self.number(constant);
                map!(self, d, [a, b], |a, b| a.wrapping_add(b));
                self.known_as(Kind::Add);
            }
            Op::IsubU32 | Op::IsubS32 => {
                let [a, b] = self.integers(op == Op::IsubS32)?;
                map!(self, d, [a, b], |a, b| a.wrapping_sub(b));
            }
            Op::ImulI32 | Op::ImulS32 => {
                let [a, b] = self.integers(op == Op::ImulS32)?;
                map!(self, d, [a, b], |a, b| a.wrapping_mul(b));
            }
            Op::S8ToS32 | Op::S16ToS32 | Op::U8ToU32 | Op::U16ToU32 => {
                let signed = matches!(op, Op::S8ToS32 | Op::S16ToS32);
                let a = self.integer_source(0, signed)?;
                self.copy(a, d);
            }
            Op::ClzU32 => {
                let a = self.source(0)?;
                map!(self, d, [a], |a| integer::clz(a, Element::U32));
            }
            Op::PopcountI32 => {
                let a = self.source(0)?;
                map!(self, d, [a], |a| a.count_ones());
            }
            Op::BitrevI32 => {
                let a = self.source(0)?;
                map!(self, d, [a], |a| a.reverse_bits());
            }
            Op::IabsS32 => {
                let a = self.integer_source(0, true)?;
                map!(self, d, [a], |a| integer::iabs(a, Element::S32));
            }
            Op::HaddU32 | Op::HaddS32 => self.hadd(op == Op::HaddS32)?,
            Op::MkvecV2i16 => {
                let [a, b] = [self.half(0)?, self.half(1)?];
                map!(self, d, [a, b], |a, b| a & 0xffff | b << 16);
            }
            Op::MkvecV2i8 => {
                let parts = [self.selected(0)?, self.selected(1)?];
                let (a, b, c) = (self.source(0)?, self.source(1)?, self.source(2)?);
                let [a, b] = [
                    self.part(a, parts[0], false)?,
                    self.part(b, parts[1], false)?,
                ];
                map!(self, d, [a, b, c], |a, b, c| a | b << 8 | c << 16);
            }
            Op::LshiftAndI32 => self.shift(Logic::And, true)?,
            Op::LshiftOrI32 => self.shift(Logic::Or, true)?,
            Op::LshiftXorI32 => self.shift(Logic::Xor, true)?,
            Op::RshiftAndI32 => self.shift(Logic::And, false)?,
            Op::RshiftOrI32 => self.shift(Logic::Or, false)?,
            Op::RshiftXorI32 => self.shift(Logic::Xor, false)?,
            Op::IcmpOrU32 => self.icmp(Element::U32, Logic::Or)?,
            Op::IcmpOrS32 => self.icmp(Element::S32, Logic::Or)?,
            Op::IcmpAndU32 => self.icmp(Element::U32, Logic::And)?,
            Op::IcmpAndS32 => self.icmp(Element::S32, Logic::And)?,
            Op::CselU32 => self.csel(Element::U32)?,
            Op::CselS32 => self.csel(Element::S32)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn integers(&mut self, signed: bool) -> Result<[u16; 2], Trap> {
        Ok([
            self.integer_source(0, signed)?,
            self.integer_source(1, signed)?,
        ])
    }

    /// Half of the sum, rounded down or up.
    fn hadd(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, [a, b]) = (self.dest, self.integers(signed)?);
        let up = u32::from(self.ins.value(&RHADD) == Some(1));
        if signed {
            rare!(self, d, [a, b], up, |up, a, b| {
                integer::hadd(a, b, Element::S32, up != 0)
            });
        } else {
            rare!(self, d, [a, b], up, |up, a, b| {
                integer::hadd(a, b, Element::U32, up != 0)
            });
        }
        Ok(())
    }

    /// One half of a source, in the low half of a row. Of an order of two halves it is not public which counts; of zero, none does.
    fn half(&mut self, byte: usize) -> Result<u16, Trap> {
        let (operand, row) = (self.operand(byte)?, self.source(byte)?);
        match operand.selected() {
            Some("h00") => Ok(row),
            Some("h11") => self.part(row, Part::H1, false),
            _ if operand.code.constant() == Some(0) => Ok(row),
            _ => Err(self.trap("has a select that is not translated")),
        }
    }

    /// A shift by a byte of the second source, then logic with the third.
    fn shift(&mut self, logic: Logic, left: bool) -> Result<(), Trap> {
        let arithmetic = self.ins.value(&SIGNED) == Some(1);
        let lane = match self.selected(1)? {
            Part::B0 => 0,
            Part::B1 => 1,
            Part::B2 => 2,
            Part::B3 => 3,
            _ => return Err(self.trap("shifts by no byte")),
        };
        let not_other = self.operand(2)?.complement;
        let not_result = self.ins.value(&NOT_RESULT) == Some(1);
        let m = lane | u32::from(not_other) << 2 | u32::from(not_result) << 3;
        let x = self.integer_source(0, arithmetic)?;
        let sources = [x, self.source(1)?, self.source(2)?];
        macro_rules! shifted {
            ($shift:ident, $logic:ident) => {
                loops::three(
                    #[inline(always)]
                    |m, x, n, other| {
                        let x = shift::shift(x, n >> (8 * (m & 3)), Shift::$shift, Counts::Word(0));
                        shift::logic(x, other, Logic::$logic, m & 4 != 0, m & 8 != 0)
                    },
                )
            };
        }
        let run = match (logic, left, arithmetic) {
            (Logic::And, true, _) => shifted!(Left, And),
            (Logic::Or, true, _) => shifted!(Left, Or),
            (Logic::Xor, true, _) => shifted!(Left, Xor),
            (Logic::And, false, false) => shifted!(Right, And),
            (Logic::Or, false, false) => shifted!(Right, Or),
            (Logic::Xor, false, false) => shifted!(Right, Xor),
            (Logic::And, false, true) => shifted!(Arithmetic, And),
            (Logic::Or, false, true) => shifted!(Arithmetic, Or),
            (Logic::Xor, false, true) => shifted!(Arithmetic, Xor),
        };
        let d = self.dest;
        self.rows(run, d, sources, m);
        Ok(())
    }

    /// The condition that the instruction asks for.
    pub(super) fn condition(&self) -> Result<Compare, Trap> {
        Ok(match self.ins.named(&CONDITION) {
            Some("eq") => Compare::Eq,
            Some("gt") => Compare::Gt,
            Some("ge") => Compare::Ge,
            Some("ne") => Compare::Ne,
            Some("lt") => Compare::Lt,
            Some("le") => Compare::Le,
            Some("gtlt") => Compare::GtLt,
            Some("total") => Compare::Total,
            _ => return Err(self.trap("lacks a condition")),
        })
    }

    /// True as a word.
    pub(super) fn truth(&self) -> Result<u32, Trap> {
        Ok(match self.ins.named(&RESULT_TYPE) {
            Some("i1") => Truth::I1.word(true),
            Some("f1") => Truth::F1.word(true),
            Some("m1") => Truth::M1.word(true),
            _ => return Err(self.trap("gives a truth that is not public")),
        })
    }

    fn icmp(&mut self, element: Element, logic: Logic) -> Result<(), Trap> {
        let (how, truth) = (self.condition()?, self.truth()?);
        let [a, b] = self.integers(element.is_signed())?;
        let (how, exchanged) = how.turned();
        let sources = if exchanged { [b, a] } else { [a, b] };
        macro_rules! compared {
            ($element:ident, $how:ident) => {
                loops::two(
                    #[inline(always)]
                    |m, a, b| integer::icmp(a, b, Element::$element, Compare::$how, Truth::M1) & m,
                )
            };
        }
        let run = match (how, element.is_signed()) {
            (Compare::Eq, _) => compared!(U32, Eq),
            (Compare::Ne | Compare::GtLt, _) => compared!(U32, Ne),
            (Compare::Ge | Compare::Le, false) => compared!(U32, Ge),
            (Compare::Ge | Compare::Le, true) => compared!(S32, Ge),
            (Compare::Gt | Compare::Lt, false) => compared!(U32, Gt),
            (Compare::Gt | Compare::Lt, true) => compared!(S32, Gt),
            (Compare::Total, _) => return Err(self.trap("asks whether integers are ordered")),
        };
        self.joined(logic, |t, d| {
            t.rows(run, d, sources, truth);
            Ok(())
        })
    }

    /// What `compare` puts into a row, combined with the third source.
    pub(super) fn joined(
        &mut self,
        logic: Logic,
        compare: impl FnOnce(&mut Self, u16) -> Result<(), Trap>,
    ) -> Result<(), Trap> {
        let (d, other) = (self.dest, self.operand(2)?);
        if logic == Logic::Or && other.code.constant() == Some(0) {
            return compare(self, d);
        }
        let (other, result) = (self.source(2)?, self.temporary()?);
        compare(self, result)?;
        match logic {
            Logic::Or => map!(self, d, [result, other], |a, b| a | b),
            _ => map!(self, d, [result, other], |a, b| a & b),
        }
        Ok(())
    }

    fn csel(&mut self, element: Element) -> Result<(), Trap> {
        let d = self.dest;
        let [a, b, c, e] = self.four_sources()?;
        let Some((equal, sources)) = equal_or_above(self.condition()?, [a, b, c, e]) else {
            return Err(self.trap("asks whether integers are ordered"));
        };
        let [a, b, c, e] = sources;
        match (equal, element) {
            (true, _) => map!(self, d, [a, b, c, e], |a, b, c, e| {
                integer::csel(a, b, c, e, Element::U32, Compare::Eq)
            }),
            (false, Element::S32) => map!(self, d, [a, b, c, e], |a, b, c, e| {
                integer::csel(a, b, c, e, Element::S32, Compare::Gt)
            }),
            (false, _) => map!(self, d, [a, b, c, e], |a, b, c, e| {
                integer::csel(a, b, c, e, Element::U32, Compare::Gt)
            }),
        }
        Ok(())
    }

    pub(super) fn four_sources(&mut self) -> Result<[u16; 4], Trap> {
        Ok([
            self.source(0)?,
            self.source(1)?,
            self.source(2)?,
            self.source(3)?,
        ])
    }
}
