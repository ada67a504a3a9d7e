// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer comparison, selection and permutation.

use mali_isa::{Lanes, Mux as Decides};

use super::float::{compare, truth};
use super::{Translator, Trap};
use crate::alu::integer::{Element, Mux, Partial};
use crate::alu::{Compare, Truth, integer, pack};
use crate::ir::micro::{Kind, OnRows};
use crate::operations::loops;

/// True as a word of elements.
fn true_word(truth: Truth, element: Element) -> u32 {
    match element {
        Element::S32 | Element::U32 => truth.word(true),
        Element::S16 | Element::U16 => u32::from(truth.half(true)) * 0x1_0001,
        Element::S8 | Element::U8 => u32::from(truth.byte(true)) * 0x101_0101,
    }
}

/// The loop that compares elements of a width: `comparison!(element, [unsigned, signed], compare)`.
macro_rules! comparison {
    ($element:expr, [$unsigned:ident, $signed:ident], $compare:expr) => {
        match ($compare, $element.is_signed()) {
            (Compare::Eq, _) => comparison!($unsigned, Eq),
            (Compare::Ge | Compare::Le, false) => comparison!($unsigned, Ge),
            (Compare::Ge | Compare::Le, true) => comparison!($signed, Ge),
            (Compare::Gt | Compare::Lt, false) => comparison!($unsigned, Gt),
            (Compare::Gt | Compare::Lt, true) => comparison!($signed, Gt),
            (Compare::Ne | Compare::GtLt | Compare::Total, _) => comparison!($unsigned, Ne),
        }
    };
    ($element:ident, $compare:ident) => {
        loops::two(
            #[inline(always)]
            |m, a, b| integer::icmp(a, b, Element::$element, Compare::$compare, Truth::M1) & m,
        )
    };
}

impl Translator<'_> {
    pub(super) fn icmp(&mut self, element: Element) -> Result<(), Trap> {
        let sources = self.integer_sources(element)?;
        let m = true_word(truth(self.ins.result_type()), element);
        self.compare_integers(self.dest, sources, element, compare(self.ins.compare()), m);
        Ok(())
    }

    /// Puts `m` into row `d` in elements that compare so, else zero.
    pub(super) fn compare_integers(
        &mut self,
        d: u16,
        [a, b]: [u16; 2],
        element: Element,
        how: Compare,
        m: u32,
    ) {
        if how == Compare::Total {
            let always = self.number(m);
            self.copy(always, d);
            return;
        }
        let (how, exchanged) = how.turned();
        let sources = if exchanged { [b, a] } else { [a, b] };
        let run: OnRows = match element {
            Element::U32 | Element::S32 => comparison!(element, [U32, S32], how),
            Element::U16 | Element::S16 => comparison!(element, [U16, S16], how),
            Element::U8 | Element::S8 => comparison!(element, [U8, S8], how),
        };
        self.rows(run, d, sources, m);
        if (element, how, m) == (Element::U32, Compare::Gt, 1) {
            self.known_as(Kind::Above);
        }
    }

    pub(super) fn csel(&mut self, element: Element) -> Result<(), Trap> {
        let d = self.dest;
        let [a, b, c, e] = self.four_sources()?;
        let Some((equal, sources)) = equal_or_above(compare(self.ins.compare()), [a, b, c, e])
        else {
            self.copy(c, d);
            return Ok(());
        };
        let run = match (element, equal) {
            (Element::S16 | Element::U16, true) => loops::four(
                #[inline(always)]
                |_, a, b, c, e| integer::csel(a, b, c, e, Element::U16, Compare::Eq),
            ),
            (Element::S16, false) => loops::four(
                #[inline(always)]
                |_, a, b, c, e| integer::csel(a, b, c, e, Element::S16, Compare::Gt),
            ),
            (Element::U16, false) => loops::four(
                #[inline(always)]
                |_, a, b, c, e| integer::csel(a, b, c, e, Element::U16, Compare::Gt),
            ),
            (_, true) => loops::four(
                #[inline(always)]
                |_, a, b, c, e| integer::csel(a, b, c, e, Element::U32, Compare::Eq),
            ),
            (Element::S32, false) => loops::four(
                #[inline(always)]
                |_, a, b, c, e| integer::csel(a, b, c, e, Element::S32, Compare::Gt),
            ),
            (_, false) => loops::four(
                #[inline(always)]
                |_, a, b, c, e| integer::csel(a, b, c, e, Element::U32, Compare::Gt),
            ),
        };
        self.rows(run, d, sources, 0);
        Ok(())
    }

    /// `ICMPI`: begins the comparison of long numbers.
    pub(super) fn icmp_low(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, a, b) = (self.dest, self.source(0)?, self.source(1)?);
        let truth = truth(self.ins.result_type());
        let m = integer::icmpi(0, 0, signed, compare(self.ins.compare()), truth).0;
        rare!(self, d, [a, b], m, |m, a, b| {
            m | integer::icmpi(a, b, false, Compare::Eq, Truth::I1).0
        });
        Ok(())
    }

    /// `ICMPM`: goes on with it.
    pub(super) fn icmp_middle(&mut self) -> Result<(), Trap> {
        let (d, a, b, c) = (self.dest, self.source(0)?, self.source(1)?, self.source(2)?);
        rare!(self, d, [a, b, c], 0, |_, a, b, c| integer::icmpm(
            a,
            b,
            Partial(c)
        )
        .0);
        Ok(())
    }

    /// `ICMPF`: ends it.
    pub(super) fn icmp_top(&mut self) -> Result<(), Trap> {
        let (d, a, b, c) = (self.dest, self.source(0)?, self.source(1)?, self.source(2)?);
        rare!(self, d, [a, b, c], 0, |_, a, b, c| integer::icmpf(
            a,
            b,
            Partial(c)
        ));
        Ok(())
    }

    pub(super) fn mux_words(&mut self) -> Result<(), Trap> {
        match self.ins.mux() {
            Decides::Neg => direct!(self, |a, b, c| integer::mux(a, b, c, Mux::Neg, 32)),
            Decides::IntZero => direct!(self, |a, b, c| integer::mux(a, b, c, Mux::IntZero, 32)),
            Decides::FpZero => direct!(self, |a, b, c| integer::mux(a, b, c, Mux::FpZero, 32)),
            Decides::Bit => direct!(self, |a, b, c| integer::mux(a, b, c, Mux::Bit, 32)),
        }
    }

    pub(super) fn mux_halves(&mut self) -> Result<(), Trap> {
        let (d, [a, b]) = (self.dest, self.integer_sources(Element::U32)?);
        let c = self.integer_source(2, Element::U32)?;
        match self.ins.mux() {
            Decides::Neg => {
                map!(self, d, [a, b, c], |a, b, c| integer::mux(
                    a,
                    b,
                    c,
                    Mux::Neg,
                    16
                ));
            }
            Decides::IntZero => {
                map!(self, d, [a, b, c], |a, b, c| integer::mux(
                    a,
                    b,
                    c,
                    Mux::IntZero,
                    16
                ));
            }
            Decides::FpZero => {
                map!(self, d, [a, b, c], |a, b, c| integer::mux(
                    a,
                    b,
                    c,
                    Mux::FpZero,
                    16
                ));
            }
            Decides::Bit => {
                map!(self, d, [a, b, c], |a, b, c| integer::mux(
                    a,
                    b,
                    c,
                    Mux::Bit,
                    16
                ));
            }
        }
        Ok(())
    }

    pub(super) fn mux_bytes(&mut self) -> Result<(), Trap> {
        if self.ins.mux() == Decides::Neg {
            direct!(self, |a, b, c| integer::mux(a, b, c, Mux::Neg, 8))
        } else {
            direct!(self, |a, b, c| integer::mux(a, b, c, Mux::IntZero, 8))
        }
    }

    pub(super) fn mkvec_halves(&mut self) -> Result<(), Trap> {
        let upper = [self.ins.lanes0(), self.ins.lanes1()].map(|lanes| lanes == Lanes::H1);
        match upper {
            [false, false] => direct!(self, |a, b| pack::mkvec_halves(a, b, false, false)),
            [true, false] => direct!(self, |a, b| pack::mkvec_halves(a, b, true, false)),
            [false, true] => direct!(self, |a, b| pack::mkvec_halves(a, b, false, true)),
            [true, true] => direct!(self, |a, b| pack::mkvec_halves(a, b, true, true)),
        }
    }

    pub(super) fn mkvec_bytes(&mut self) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.four_sources()?);
        let m = (0..4).fold(0, |m, i| m | u32::from(self.lanes(i) == Lanes::B2) << i);
        self.rows(
            loops::four(
                #[inline(always)]
                |m, a, b, c, d| {
                    let upper = [m & 1 != 0, m & 2 != 0, m & 4 != 0, m & 8 != 0];
                    pack::mkvec_bytes([a, b, c, d], upper)
                },
            ),
            d,
            sources,
            m,
        );
        Ok(())
    }
}

/// Every comparison of integers is one for equality (true) or one for above, with operands or results of a selection exchanged. `None`: whether
/// they are ordered, which integers always are.
pub(crate) fn equal_or_above(how: Compare, [a, b, c, e]: [u16; 4]) -> Option<(bool, [u16; 4])> {
    Some(match how {
        Compare::Eq => (true, [a, b, c, e]),
        Compare::Ne | Compare::GtLt => (true, [a, b, e, c]),
        Compare::Gt => (false, [a, b, c, e]),
        Compare::Le => (false, [a, b, e, c]),
        Compare::Lt => (false, [b, a, c, e]),
        Compare::Ge => (false, [b, a, e, c]),
        Compare::Total => return None,
    })
}
