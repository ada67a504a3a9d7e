// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic.

use gpureplay_shader::alu::integer::Element;
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::elements::Elements;
use mali_isa::Sign;

use super::{Translator, Trap};

impl Translator<'_> {
    pub(super) fn integer_source(&mut self, index: usize, element: Element) -> Result<u16, Trap> {
        let (row, lanes) = (self.source(index)?, self.lanes(index));
        self.arranged(row, lanes, element.is_signed())
    }

    pub(super) fn integer_sources(&mut self, element: Element) -> Result<[u16; 2], Trap> {
        Ok([
            self.integer_source(0, element)?,
            self.integer_source(1, element)?,
        ])
    }

    pub(super) fn iadd(&mut self, element: Element) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.integer_sources(element)?);
        self.sum(false, element, self.ins.saturate(), d, sources);
        Ok(())
    }

    pub(super) fn isub(&mut self, element: Element) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.integer_sources(element)?);
        self.sum(true, element, self.ins.saturate(), d, sources);
        Ok(())
    }

    pub(super) fn hadd(&mut self, element: Element) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.integer_sources(element)?);
        let up = self.ins.round() == mali_isa::Round::Rtp;
        self.half_sum(element, up, d, sources);
        Ok(())
    }

    pub(super) fn imul_word(&mut self) -> Result<(), Trap> {
        let (a, b) = (self.source(0)?, self.source(1)?);
        let signed = self.ins.extend() == mali_isa::Extend::Sext;
        let b = self.arranged(b, self.ins.lanes1(), signed)?;
        let d = self.dest;
        map!(self, d, [a, b], |a, b| a.wrapping_mul(b));
        Ok(())
    }

    pub(super) fn imul(&mut self, element: Element) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.integer_sources(element)?);
        self.product(element, d, sources);
        Ok(())
    }

    pub(super) fn iabs(&mut self, element: Element) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.integer_source(0, element)?);
        self.absolute(element, d, a);
        Ok(())
    }

    pub(super) fn idp(&mut self) -> Result<(), Trap> {
        let (d, a, b) = (self.dest, self.source(0)?, self.source(1)?);
        let signed = [self.ins.sign0(), self.ins.sign1()].map(|sign| sign == Sign::Sext);
        self.dot_product(signed, d, [a, b]);
        Ok(())
    }

    pub(super) fn clz(&mut self, element: Element) -> Result<(), Trap> {
        let (d, mut a) = (self.dest, self.integer_source(0, element)?);
        if self.ins.mask() {
            let inverted = self.temporary()?;
            map!(self, inverted, [a], |a| !a);
            a = inverted;
        }
        self.leading_zeros(element, d, a);
        Ok(())
    }
}
