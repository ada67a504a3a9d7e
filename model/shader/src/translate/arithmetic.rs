// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic.

use mali_isa::Sign;

use super::{Translator, Trap};
use crate::alu::integer;
use crate::alu::integer::Element;
use crate::ir::micro::Kind;

/// A bit of the modifiers of functions that are seldom needed, next to the number of their elements.
const FLAG: u32 = 8;

impl Translator<'_> {
    /// Source `index` with its lanes arranged and extended as elements of this kind.
    pub(super) fn integer_source(&mut self, index: usize, element: Element) -> Result<u16, Trap> {
        let (row, lanes) = (self.source(index)?, self.lanes(index));
        self.arranged(row, lanes, element.is_signed())
    }

    /// The first two sources, so arranged.
    pub(super) fn integer_sources(&mut self, element: Element) -> Result<[u16; 2], Trap> {
        Ok([
            self.integer_source(0, element)?,
            self.integer_source(1, element)?,
        ])
    }

    pub(super) fn iadd(&mut self, element: Element) -> Result<(), Trap> {
        let (d, [a, b]) = (self.dest, self.integer_sources(element)?);
        if self.ins.saturate() {
            rare!(self, d, [a, b], element as u32, |m, a, b| {
                integer::iadd(a, b, Element::numbered(m), true)
            });
            return Ok(());
        }
        self.sum(false, element, d, a, b);
        if element.unsigned() == Element::U32 {
            self.known_as(Kind::Add);
        }
        Ok(())
    }

    pub(super) fn isub(&mut self, element: Element) -> Result<(), Trap> {
        let (d, [a, b]) = (self.dest, self.integer_sources(element)?);
        if self.ins.saturate() {
            rare!(self, d, [a, b], element as u32, |m, a, b| {
                integer::isub(a, b, Element::numbered(m), true)
            });
        } else {
            self.sum(true, element, d, a, b);
        }
        Ok(())
    }

    /// A sum or difference of elements, modulo their width.
    pub(super) fn sum(&mut self, subtracts: bool, element: Element, d: u16, a: u16, b: u16) {
        match (subtracts, element.unsigned()) {
            (false, Element::U16) => {
                map!(self, d, [a, b], |a, b| integer::iadd(
                    a,
                    b,
                    Element::U16,
                    false
                ));
            }
            (false, Element::U8) => {
                map!(self, d, [a, b], |a, b| integer::iadd(
                    a,
                    b,
                    Element::U8,
                    false
                ));
            }
            (false, _) => map!(self, d, [a, b], |a, b| a.wrapping_add(b)),
            (true, Element::U16) => {
                map!(self, d, [a, b], |a, b| integer::isub(
                    a,
                    b,
                    Element::U16,
                    false
                ));
            }
            (true, Element::U8) => {
                map!(self, d, [a, b], |a, b| integer::isub(
                    a,
                    b,
                    Element::U8,
                    false
                ));
            }
            (true, _) => map!(self, d, [a, b], |a, b| a.wrapping_sub(b)),
        }
    }

    pub(super) fn hadd(&mut self, element: Element) -> Result<(), Trap> {
        let (d, [a, b]) = (self.dest, self.integer_sources(element)?);
        let up = self.ins.round() == mali_isa::Round::Rtp;
        let m = element as u32 | if up { FLAG } else { 0 };
        rare!(self, d, [a, b], m, |m, a, b| {
            integer::hadd(a, b, Element::numbered(m & 7), m & FLAG != 0)
        });
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
        let (d, [a, b]) = (self.dest, self.integer_sources(element)?);
        if element == Element::U16 {
            map!(self, d, [a, b], |a, b| integer::imul(a, b, Element::U16));
        } else {
            map!(self, d, [a, b], |a, b| integer::imul(a, b, Element::U8));
        }
        Ok(())
    }

    pub(super) fn iabs(&mut self, element: Element) -> Result<(), Trap> {
        let (d, a) = (self.dest, self.integer_source(0, element)?);
        if element == Element::S32 {
            map!(self, d, [a], |a| integer::iabs(a, Element::S32));
        } else {
            rare!(self, d, [a], element as u32, |m, a| {
                integer::iabs(a, Element::numbered(m))
            });
        }
        Ok(())
    }

    pub(super) fn idp(&mut self) -> Result<(), Trap> {
        let (d, a, b) = (self.dest, self.source(0)?, self.source(1)?);
        match (self.ins.sign0(), self.ins.sign1()) {
            (Sign::Sext, Sign::Sext) => {
                map!(self, d, [a, b], |a, b| integer::idp(a, b, true, true));
            }
            (Sign::Zext, Sign::Zext) => {
                map!(self, d, [a, b], |a, b| integer::idp(a, b, false, false));
            }
            (Sign::Sext, Sign::Zext) => {
                rare!(self, d, [a, b], 0, |_, a, b| integer::idp(
                    a, b, true, false
                ));
            }
            (Sign::Zext, Sign::Sext) => {
                rare!(self, d, [a, b], 0, |_, a, b| integer::idp(
                    a, b, false, true
                ));
            }
        }
        Ok(())
    }

    pub(super) fn clz(&mut self, element: Element) -> Result<(), Trap> {
        let (d, mut a) = (self.dest, self.integer_source(0, element)?);
        if self.ins.mask() {
            let inverted = self.temporary()?;
            map!(self, inverted, [a], |a| !a);
            a = inverted;
        }
        if element == Element::U32 {
            map!(self, d, [a], |a| integer::clz(a, Element::U32));
        } else {
            rare!(self, d, [a], element as u32, |m, a| {
                integer::clz(a, Element::numbered(m))
            });
        }
        Ok(())
    }
}
