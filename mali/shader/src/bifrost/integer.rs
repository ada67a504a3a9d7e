// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer comparison, selection and permutation.

use gpureplay_shader::alu::integer::{Element, Mux, Partial};
use gpureplay_shader::alu::{Compare, Truth, integer, pack};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::elements::{Elements, true_word};
use gpureplay_shader::operations::loops;
use mali_isa::{Lanes, Mux as Decides};

use super::float::{compare, truth};
use super::{Translator, Trap};

impl Translator<'_> {
    pub(super) fn icmp(&mut self, element: Element) -> Result<(), Trap> {
        let sources = self.integer_sources(element)?;
        let m = true_word(truth(self.ins.result_type()), element);
        self.compare_integers(self.dest, sources, element, compare(self.ins.compare()), m);
        Ok(())
    }

    pub(super) fn csel(&mut self, element: Element) -> Result<(), Trap> {
        let (d, sources) = (self.dest, self.four_sources()?);
        self.select_integers(d, sources, element, compare(self.ins.compare()));
        Ok(())
    }

    /// Long numbers are compared by words, from the lowest: `ICMPI`, `ICMPM`, `ICMPF`.
    pub(super) fn icmp_low(&mut self, signed: bool) -> Result<(), Trap> {
        let (d, a, b) = (self.dest, self.source(0)?, self.source(1)?);
        let truth = truth(self.ins.result_type());
        let m = integer::icmpi(0, 0, signed, compare(self.ins.compare()), truth).0;
        rare!(self, d, [a, b], m, |m, a, b| {
            m | integer::icmpi(a, b, false, Compare::Eq, Truth::I1).0
        });
        Ok(())
    }

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

    pub(super) fn icmp_top(&mut self) -> Result<(), Trap> {
        let (d, a, b, c) = (self.dest, self.source(0)?, self.source(1)?, self.source(2)?);
        rare!(self, d, [a, b, c], 0, |_, a, b, c| integer::icmpf(
            a,
            b,
            Partial(c)
        ));
        Ok(())
    }

    pub(super) fn mux(&mut self, bits: u32) -> Result<(), Trap> {
        let d = self.dest;
        let sources = match bits {
            16 => {
                let [a, b] = self.integer_sources(Element::U32)?;
                [a, b, self.integer_source(2, Element::U32)?]
            }
            _ => [self.source(0)?, self.source(1)?, self.source(2)?],
        };
        let mux = match self.ins.mux() {
            Decides::Neg => Mux::Neg,
            Decides::IntZero => Mux::IntZero,
            Decides::FpZero => Mux::FpZero,
            Decides::Bit => Mux::Bit,
        };
        self.multiplex(mux, bits, d, sources);
        Ok(())
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
