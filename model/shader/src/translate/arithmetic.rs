// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic.

use mali_isa::Mnemonic as M;
use mali_isa::Sign;

use super::{Translator, Trap};
use crate::alu::integer;
use crate::alu::integer::Element;
use crate::ir::micro::Kind;
use crate::operations::loops;

/// The element type that a mnemonic ends in.
pub(super) fn element(mnemonic: M) -> Element {
    match mnemonic {
        M::IaddS32
        | M::IsubS32
        | M::HaddS32
        | M::IabsS32
        | M::IcmpS32
        | M::CselS32
        | M::IcmpiS32 => Element::S32,
        M::IaddV2s16 | M::IsubV2s16 | M::HaddV2s16 | M::IabsV2s16 | M::IcmpV2s16 | M::CselV2s16 => {
            Element::S16
        }
        M::IaddV2u16
        | M::IsubV2u16
        | M::HaddV2u16
        | M::ImulV2i16
        | M::IcmpV2u16
        | M::IcmpV2i16
        | M::CselV2u16
        | M::CselV2i16
        | M::ClzV2u16 => Element::U16,
        M::IaddV4s8 | M::IsubV4s8 | M::HaddV4s8 | M::IabsV4s8 | M::IcmpV4s8 => Element::S8,
        M::IaddV4u8
        | M::IsubV4u8
        | M::HaddV4u8
        | M::ImulV4i8
        | M::IcmpV4u8
        | M::IcmpV4i8
        | M::ClzV4u8 => Element::U8,
        _ => Element::U32,
    }
}

/// [`each!`] for element types.
macro_rules! each_element {
    ($value:expr, $name:ident => $body:expr) => {
        each!($value, $name: Element { S32, U32, S16, U16, S8, U8 } => $body)
    };
}

impl Translator<'_> {
    /// Source `index` with its lanes arranged and extended by the sign of the operation.
    pub(super) fn integer_source(&mut self, index: usize) -> Result<u16, Trap> {
        let signed = matches!(
            element(self.ins.op.mnemonic()),
            Element::S32 | Element::S16 | Element::S8
        );
        let (row, lanes) = (self.source(index)?, self.lanes(index));
        self.arranged(row, lanes, signed)
    }

    pub(super) fn arithmetic(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        let mnemonic = self.ins.op.mnemonic();
        let kind = element(mnemonic);
        match mnemonic {
            M::IaddS32 | M::IaddU32 | M::IaddV2s16 | M::IaddV2u16 | M::IaddV4s8 | M::IaddV4u8 => {
                let (a, b) = (self.integer_source(0)?, self.integer_source(1)?);
                if self.ins.saturate() {
                    each_element!(kind, KIND => map!(self, d, [a, b], |a, b| integer::iadd(a, b, KIND, true)));
                } else {
                    each_element!(kind, KIND => map!(self, d, [a, b], |a, b| integer::iadd(a, b, KIND, false)));
                    if matches!(kind, Element::S32 | Element::U32) {
                        self.known_as(Kind::Add);
                    }
                }
            }
            M::IsubS32 | M::IsubU32 | M::IsubV2s16 | M::IsubV2u16 | M::IsubV4s8 | M::IsubV4u8 => {
                let (a, b) = (self.integer_source(0)?, self.integer_source(1)?);
                if self.ins.saturate() {
                    each_element!(kind, KIND => map!(self, d, [a, b], |a, b| integer::isub(a, b, KIND, true)));
                } else {
                    each_element!(kind, KIND => map!(self, d, [a, b], |a, b| integer::isub(a, b, KIND, false)));
                }
            }
            M::HaddS32 | M::HaddU32 | M::HaddV2s16 | M::HaddV2u16 | M::HaddV4s8 | M::HaddV4u8 => {
                let (a, b) = (self.integer_source(0)?, self.integer_source(1)?);
                if self.ins.round() == mali_isa::Round::Rtp {
                    each_element!(kind, KIND => map!(self, d, [a, b], |a, b| integer::hadd(a, b, KIND, true)));
                } else {
                    each_element!(kind, KIND => map!(self, d, [a, b], |a, b| integer::hadd(a, b, KIND, false)));
                }
            }
            M::ImulI32 => {
                let (a, b) = (self.source(0)?, self.source(1)?);
                let b = self.arranged(
                    b,
                    self.ins.lanes1(),
                    self.ins.extend() == mali_isa::Extend::Sext,
                )?;
                map!(self, d, [a, b], |a, b| a.wrapping_mul(b));
            }
            M::ImulV2i16 | M::ImulV4i8 => {
                let (a, b) = (self.integer_source(0)?, self.integer_source(1)?);
                each_element!(kind, KIND => map!(self, d, [a, b], |a, b| integer::imul(a, b, KIND)));
            }
            M::IabsS32 | M::IabsV2s16 | M::IabsV4s8 => {
                let a = self.integer_source(0)?;
                each_element!(kind, KIND => map!(self, d, [a], |a| integer::iabs(a, KIND)));
            }
            M::IaddcI32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, x, y, z| integer::iaddc(x, y, z),
                ),
            )?,
            M::IsubbI32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, x, y, z| integer::isubb(x, y, z),
                ),
            )?,
            M::ImadI32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, x, y, z| integer::imad(x, y, z),
                ),
            )?,
            M::ImulsubI32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, x, y, z| integer::imulsub(x, y, z),
                ),
            )?,
            M::ImsubI32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, x, y, z| integer::imsub(x, y, z),
                ),
            )?,
            M::Imax3S32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::imax3(a, b, c, true),
                ),
            )?,
            M::Imax3U32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::imax3(a, b, c, false),
                ),
            )?,
            M::Imin3S32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::imin3(a, b, c, true),
                ),
            )?,
            M::Imin3U32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::imin3(a, b, c, false),
                ),
            )?,
            M::IclampS32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::iclamp(a, b, c, true),
                ),
            )?,
            M::IclampU32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::iclamp(a, b, c, false),
                ),
            )?,
            M::IdpV4i8 => {
                let (a, b) = (self.source(0)?, self.source(1)?);
                match (self.ins.sign0(), self.ins.sign1()) {
                    (Sign::Sext, Sign::Sext) => {
                        map!(self, d, [a, b], |a, b| integer::idp(a, b, true, true))
                    }
                    (Sign::Sext, Sign::Zext) => {
                        map!(self, d, [a, b], |a, b| integer::idp(a, b, true, false))
                    }
                    (Sign::Zext, Sign::Sext) => {
                        map!(self, d, [a, b], |a, b| integer::idp(a, b, false, true))
                    }
                    (Sign::Zext, Sign::Zext) => {
                        map!(self, d, [a, b], |a, b| integer::idp(a, b, false, false))
                    }
                }
            }
            M::ClzU32 | M::ClzV2u16 | M::ClzV4u8 => {
                let a = self.integer_source(0)?;
                let a = if self.ins.mask() {
                    self.inverted(a)?
                } else {
                    a
                };
                each_element!(kind, KIND => map!(self, d, [a], |a| integer::clz(a, KIND)));
            }
            M::PopcountI32 => {
                let a = self.source(0)?;
                map!(self, d, [a], |a| integer::popcount(a));
            }
            M::BitrevI32 => {
                let a = self.source(0)?;
                map!(self, d, [a], |a| integer::bitrev(a));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Emits a function of the three sources as they are.
    pub(super) fn three(&mut self, d: u16, run: super::OnRows) -> Result<(), Trap> {
        let sources = [self.source(0)?, self.source(1)?, self.source(2)?];
        self.rows(run, d, sources, 0);
        Ok(())
    }

    fn inverted(&mut self, a: u16) -> Result<u16, Trap> {
        let to = self.temporary()?;
        map!(self, to, [a], |a| !a);
        Ok(to)
    }
}
