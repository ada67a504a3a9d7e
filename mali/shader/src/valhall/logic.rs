// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shifts, comparisons and selections.

use gpureplay_shader::alu::integer::{Element, Mux};
use gpureplay_shader::alu::shift::{Counts, Logic, Shift};
use gpureplay_shader::alu::{Compare, Truth};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::common::Common;
use gpureplay_shader::emit::elements::{After, Elements, true_word};
use mali_isa::valhall::{CONDITION, MUX, NOT_RESULT, Op, RESULT_TYPE, SIGNED};

use super::{Translator, Trap};

const WORD: u32 = 32;
const HALF: u32 = 16;
const BYTE: u32 = 8;

impl Translator<'_> {
    pub(super) fn logic(&mut self, op: Op) -> Result<bool, Trap> {
        use Element::{S8, S16, S32, U8, U16, U32};
        use Logic::{And, Or, Xor};
        match op {
            Op::LshiftAndI32 => self.shift(And, true, WORD)?,
            Op::LshiftOrI32 => self.shift(Or, true, WORD)?,
            Op::LshiftXorI32 => self.shift(Xor, true, WORD)?,
            Op::RshiftAndI32 => self.shift(And, false, WORD)?,
            Op::RshiftOrI32 => self.shift(Or, false, WORD)?,
            Op::RshiftXorI32 => self.shift(Xor, false, WORD)?,
            Op::LshiftAndV2i16 => self.shift(And, true, HALF)?,
            Op::LshiftOrV2i16 => self.shift(Or, true, HALF)?,
            Op::LshiftXorV2i16 => self.shift(Xor, true, HALF)?,
            Op::RshiftAndV2i16 => self.shift(And, false, HALF)?,
            Op::RshiftOrV2i16 => self.shift(Or, false, HALF)?,
            Op::RshiftXorV2i16 => self.shift(Xor, false, HALF)?,
            Op::LshiftAndV4i8 => self.shift(And, true, BYTE)?,
            Op::LshiftOrV4i8 => self.shift(Or, true, BYTE)?,
            Op::LshiftXorV4i8 => self.shift(Xor, true, BYTE)?,
            Op::RshiftAndV4i8 => self.shift(And, false, BYTE)?,
            Op::RshiftOrV4i8 => self.shift(Or, false, BYTE)?,
            Op::RshiftXorV4i8 => self.shift(Xor, false, BYTE)?,
            Op::IcmpOrU32 => self.icmp(U32, Or)?,
            Op::IcmpOrS32 => self.icmp(S32, Or)?,
            Op::IcmpAndU32 => self.icmp(U32, And)?,
            Op::IcmpAndS32 => self.icmp(S32, And)?,
            Op::IcmpOrV2u16 => self.icmp(U16, Or)?,
            Op::IcmpOrV2s16 => self.icmp(S16, Or)?,
            Op::IcmpAndV2u16 => self.icmp(U16, And)?,
            Op::IcmpAndV2s16 => self.icmp(S16, And)?,
            Op::IcmpOrV4u8 => self.icmp(U8, Or)?,
            Op::IcmpOrV4s8 => self.icmp(S8, Or)?,
            Op::IcmpAndV4u8 => self.icmp(U8, And)?,
            Op::IcmpAndV4s8 => self.icmp(S8, And)?,
            Op::FcmpOrF32 => self.fcmp(Or)?,
            Op::FcmpAndF32 => self.fcmp(And)?,
            Op::FcmpOrV2f16 => self.fcmp_halves(Or)?,
            Op::FcmpAndV2f16 => self.fcmp_halves(And)?,
            Op::CselU32 => self.csel(U32)?,
            Op::CselS32 => self.csel(S32)?,
            Op::CselV2u16 => self.csel(U16)?,
            Op::CselV2s16 => self.csel(S16)?,
            Op::CselF32 => self.csel_float(false)?,
            Op::CselV2f16 => self.csel_float(true)?,
            Op::MuxI32 => self.mux(WORD)?,
            Op::MuxV2i16 => self.mux(HALF)?,
            Op::MuxV4i8 => self.mux(BYTE)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Count in the second source, logic with the third.
    fn shift(&mut self, logic: Logic, left: bool, bits: u32) -> Result<(), Trap> {
        let arithmetic = self.ins.value(&SIGNED) == Some(1);
        let byte = self.counting_byte(1)?;
        let counts = match bits {
            BYTE => Counts::Byte([byte; 4]),
            HALF => Counts::Half([byte; 2]),
            _ => Counts::Word(byte),
        };
        let kind = match (left, arithmetic) {
            (true, _) => Shift::Left,
            (false, false) => Shift::Right,
            (false, true) => Shift::Arithmetic,
        };
        let not = [
            self.operand(2)?.complement,
            self.ins.value(&NOT_RESULT) == Some(1),
        ];
        let d = self.dest;
        let sources = [
            self.arranged(0, arithmetic)?,
            self.source(2)?,
            self.source(1)?,
        ];
        let unshifted = self
            .operand(1)?
            .code
            .constant()
            .is_some_and(|count| count >> (8 * u32::from(byte)) & (bits - 1) == 0);
        if unshifted {
            let [x, b, _] = sources;
            match (logic, not) {
                (Logic::And, [false, false]) => map!(self, d, [x, b], |x, b| x & b),
                (Logic::Or, [false, false]) => map!(self, d, [x, b], |x, b| x | b),
                (Logic::Xor, [false, false]) => map!(self, d, [x, b], |x, b| x ^ b),
                _ => self.after(After::Logic(logic), counts, d, [x, b], not),
            }
            return Ok(());
        }
        self.shifted((kind, counts, After::Logic(logic)), d, sources, not)
    }

    fn condition(&self) -> Result<Compare, Trap> {
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

    fn order(&self) -> Result<Compare, Trap> {
        match self.condition()? {
            Compare::Total => Err(self.trap("asks whether integers are ordered")),
            how => Ok(how),
        }
    }

    fn truth(&self) -> Result<Truth, Trap> {
        Ok(match self.ins.named(&RESULT_TYPE) {
            Some("i1") => Truth::I1,
            Some("f1") => Truth::F1,
            Some("m1") => Truth::M1,
            _ => return Err(self.trap("gives a truth that is not public")),
        })
    }

    fn icmp(&mut self, element: Element, logic: Logic) -> Result<(), Trap> {
        let (how, truth) = (self.order()?, true_word(self.truth()?, element));
        let sources = self.elements(element.is_signed())?;
        self.joined(logic, |t, d| {
            t.compare_integers(d, sources, element, how, truth);
        })
    }

    fn fcmp(&mut self, logic: Logic) -> Result<(), Trap> {
        let (how, truth) = (self.condition()?, true_word(self.truth()?, Element::U32));
        let sources = [self.single(0)?, self.single(1)?];
        self.joined(logic, |t, d| t.compare_singles(d, sources, how, truth))
    }

    fn fcmp_halves(&mut self, logic: Logic) -> Result<(), Trap> {
        let (how, truth) = (self.condition()?, true_word(self.truth()?, Element::U16));
        let sources = [self.halves(0)?, self.halves(1)?];
        self.joined(logic, |t, d| t.compare_halves(d, sources, how, truth))
    }

    fn joined(&mut self, logic: Logic, compare: impl FnOnce(&mut Self, u16)) -> Result<(), Trap> {
        let (d, other) = (self.dest, self.operand(2)?);
        if logic == Logic::Or && other.code.constant() == Some(0) {
            compare(self, d);
            return Ok(());
        }
        let (other, result) = (self.source(2)?, self.temporary()?);
        compare(self, result);
        match logic {
            Logic::Or => map!(self, d, [result, other], |a, b| a | b),
            _ => map!(self, d, [result, other], |a, b| a & b),
        }
        Ok(())
    }

    fn csel(&mut self, element: Element) -> Result<(), Trap> {
        let (d, how, sources) = (self.dest, self.order()?, self.sources()?);
        self.select_integers(d, sources, element, how);
        Ok(())
    }

    fn csel_float(&mut self, narrow: bool) -> Result<(), Trap> {
        let (d, how, sources) = (self.dest, self.condition()?, self.sources()?);
        self.select_floats(d, sources, how, narrow);
        Ok(())
    }

    fn mux(&mut self, bits: u32) -> Result<(), Trap> {
        let mux = match self.ins.named(&MUX) {
            Some("neg") => Mux::Neg,
            Some("int_zero") => Mux::IntZero,
            Some("fp_zero") if bits != BYTE => Mux::FpZero,
            Some("bit") if bits != BYTE => Mux::Bit,
            _ => return Err(self.trap("chooses in a way that is not public")),
        };
        let sources = [
            self.arranged(0, false)?,
            self.arranged(1, false)?,
            self.arranged(2, false)?,
        ];
        let d = self.dest;
        self.multiplex(mux, bits, d, sources);
        Ok(())
    }
}
