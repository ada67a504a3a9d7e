// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic.

use gpureplay_shader::alu::integer::Element;
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::elements::Elements;
use mali_isa::valhall::{CONSTANT, Op, RHADD, SATURATE};

use super::{Translator, Trap};

impl Translator<'_> {
    pub(super) fn integer(&mut self, op: Op) -> Result<bool, Trap> {
        use Element::{S8, S16, S32, U8, U16, U32};
        let d = self.dest;
        match op {
            Op::MovI32 => {
                let a = self.source(0)?;
                self.copy(a, d);
            }
            Op::IaddU32 => self.add(false, U32)?,
            Op::IaddS32 => self.add(false, S32)?,
            Op::IaddV2u16 => self.add(false, U16)?,
            Op::IaddV2s16 => self.add(false, S16)?,
            Op::IaddV4u8 => self.add(false, U8)?,
            Op::IaddV4s8 => self.add(false, S8)?,
            Op::IsubU32 => self.add(true, U32)?,
            Op::IsubS32 => self.add(true, S32)?,
            Op::IsubV2u16 => self.add(true, U16)?,
            Op::IsubV2s16 => self.add(true, S16)?,
            Op::IsubV4u8 => self.add(true, U8)?,
            Op::IsubV4s8 => self.add(true, S8)?,
            Op::IaddImmI32 => self.add_constant(U32)?,
            Op::IaddImmV2i16 => self.add_constant(U16)?,
            Op::IaddImmV4i8 => self.add_constant(U8)?,
            Op::ImulI32 => self.multiply(U32)?,
            Op::ImulS32 => self.multiply(S32)?,
            Op::ImulV2i16 => self.multiply(U16)?,
            Op::ImulV2s16 => self.multiply(S16)?,
            Op::ImulV4i8 => self.multiply(U8)?,
            Op::ImulV4s8 => self.multiply(S8)?,
            Op::HaddU32 => self.hadd(U32)?,
            Op::HaddS32 => self.hadd(S32)?,
            Op::HaddV2u16 => self.hadd(U16)?,
            Op::HaddV2s16 => self.hadd(S16)?,
            Op::HaddV4u8 => self.hadd(U8)?,
            Op::HaddV4s8 => self.hadd(S8)?,
            Op::IabsS32 => self.iabs(S32)?,
            Op::IabsV2s16 => self.iabs(S16)?,
            Op::IabsV4s8 => self.iabs(S8)?,
            Op::ClzU32 => self.clz(U32)?,
            Op::ClzV2u16 => self.clz(U16)?,
            Op::ClzV4u8 => self.clz(U8)?,
            Op::IdpV4s8 => self.accumulate_dot_product(true)?,
            Op::IdpV4u8 => self.accumulate_dot_product(false)?,
            Op::PopcountI32 => {
                let a = self.source(0)?;
                map!(self, d, [a], |a| a.count_ones());
            }
            Op::BitrevI32 => {
                let a = self.source(0)?;
                map!(self, d, [a], |a| a.reverse_bits());
            }
            Op::MkvecV2i16 => {
                let [a, b] = [self.scalar(0, false)?, self.scalar(1, false)?];
                map!(self, d, [a, b], |a, b| a | b << 16);
            }
            Op::MkvecV2i8 => {
                let [a, b, c] = [
                    self.scalar(0, false)?,
                    self.scalar(1, false)?,
                    self.source(2)?,
                ];
                map!(self, d, [a, b, c], |a, b, c| a | b << 8 | c << 16);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn saturates(&self) -> bool {
        self.ins.value(&SATURATE) == Some(1)
    }

    fn add(&mut self, subtracts: bool, element: Element) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.elements(element.is_signed())?);
        self.sum(subtracts, element, self.saturates(), d, sources);
        Ok(())
    }

    fn add_constant(&mut self, element: Element) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.source(0)?);
        let b = self.ins.value(&CONSTANT).unwrap_or(0);
        let b = self.number(b as u32);
        self.sum(false, element, false, d, [a, b]);
        Ok(())
    }

    fn multiply(&mut self, element: Element) -> Result<(), Trap> {
        if self.saturates() {
            return Err(self.trap("saturates a product, which no compiler does"));
        }
        let (d, sources) = (self.dest, self.elements(element.is_signed())?);
        self.product(element, d, sources);
        Ok(())
    }

    fn hadd(&mut self, element: Element) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.elements(element.is_signed())?);
        let up = self.ins.value(&RHADD) == Some(1);
        self.half_sum(element, up, d, sources);
        Ok(())
    }

    fn iabs(&mut self, element: Element) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.arranged(0, true)?);
        self.absolute(element, d, a);
        Ok(())
    }

    fn clz(&mut self, element: Element) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.arranged(0, false)?);
        self.leading_zeros(element, d, a);
        Ok(())
    }

    fn accumulate_dot_product(&mut self, signed: bool) -> Result<(), Trap> {
        if self.saturates() {
            return Err(self.trap("saturates, which is not translated"));
        }
        let (d, [a, b, c]) = (self.dest, self.sources()?);
        let product = self.temporary()?;
        self.dot_product([signed; 2], product, [a, b]);
        self.sum(false, Element::U32, false, d, [product, c]);
        Ok(())
    }
}
