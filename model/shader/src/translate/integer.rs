// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer comparison, selection and permutation.

use mali_isa::Mnemonic as M;
use mali_isa::{Lanes, Mux as Decides};

use super::arithmetic::element;
use super::float::{compare, truth};
use super::{Translator, Trap};
use crate::alu::integer::{Element, Mux, Partial};
use crate::alu::{Compare, Truth, integer, pack};
use crate::ir::micro;
use crate::operations::loops;

/// [`each!`] for integer element types.
macro_rules! each_element {
    ($value:expr, $name:ident => $body:expr) => {
        each!($value, $name: Element { S32, U32, S16, U16, S8, U8 } => $body)
    };
}

/// True as a word of elements.
fn true_word(truth: Truth, element: Element) -> u32 {
    match element {
        Element::S32 | Element::U32 => truth.word(true),
        Element::S16 | Element::U16 => u32::from(truth.half(true)) * 0x1_0001,
        Element::S8 | Element::U8 => u32::from(truth.byte(true)) * 0x101_0101,
    }
}

impl Translator<'_> {
    pub(super) fn integer(&mut self) -> Result<bool, Trap> {
        let d = self.dest;
        let mnemonic = self.ins.op.mnemonic();
        let kind = element(mnemonic);
        match mnemonic {
            M::IcmpI32
            | M::IcmpS32
            | M::IcmpU32
            | M::IcmpV2i16
            | M::IcmpV2s16
            | M::IcmpV2u16
            | M::IcmpV4i8
            | M::IcmpV4s8
            | M::IcmpV4u8 => {
                let (a, b) = (self.integer_source(0)?, self.integer_source(1)?);
                let m = true_word(truth(self.ins.result_type()), kind);
                each_element!(kind, KIND => each_compare!(compare(self.ins.compare()), HOW => self.rows(
                    loops::two(#[inline(always)] |m, a, b| integer::icmp(a, b, KIND, HOW, Truth::M1) & m),
                    d, [a, b], m,
                )));
                if (kind, compare(self.ins.compare()), m) == (Element::U32, Compare::Gt, 1) {
                    self.known_as(micro::Kind::Above);
                }
            }
            M::CselI32 | M::CselS32 | M::CselU32 | M::CselV2i16 | M::CselV2s16 | M::CselV2u16 => {
                let (a, b) = (self.source(0)?, self.source(1)?);
                let (c, e) = (self.source(2)?, self.source(3)?);
                each_element!(kind, KIND => each_compare!(compare(self.ins.compare()), HOW => {
                    map!(self, d, [a, b, c, e], |a, b, c, e| integer::csel(a, b, c, e, KIND, HOW));
                }));
            }
            M::IcmpiI32 | M::IcmpiS32 | M::IcmpiU32 => {
                let (a, b) = (self.source(0)?, self.source(1)?);
                let (signed, truth) = (kind == Element::S32, truth(self.ins.result_type()));
                let m = integer::icmpi(0, 0, signed, compare(self.ins.compare()), truth).0;
                self.rows(
                    loops::two(
                        #[inline(always)]
                        |m, a, b| m | integer::icmpi(a, b, false, Compare::Eq, Truth::I1).0,
                    ),
                    d,
                    [a, b],
                    m,
                );
            }
            M::IcmpmI32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::icmpm(a, b, Partial(c)).0,
                ),
            )?,
            M::IcmpfI32 => self.three(
                d,
                loops::three(
                    #[inline(always)]
                    |_, a, b, c| integer::icmpf(a, b, Partial(c)),
                ),
            )?,
            M::MuxI32 => {
                let (a, b, c) = (self.source(0)?, self.source(1)?, self.source(2)?);
                match self.ins.mux() {
                    Decides::Neg => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::Neg,
                        32
                    )),
                    Decides::IntZero => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::IntZero,
                        32
                    )),
                    Decides::FpZero => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::FpZero,
                        32
                    )),
                    Decides::Bit => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::Bit,
                        32
                    )),
                }
            }
            M::MuxV2i16 => {
                let (a, b, c) = (
                    self.integer_source(0)?,
                    self.integer_source(1)?,
                    self.integer_source(2)?,
                );
                match self.ins.mux() {
                    Decides::Neg => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::Neg,
                        16
                    )),
                    Decides::IntZero => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::IntZero,
                        16
                    )),
                    Decides::FpZero => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::FpZero,
                        16
                    )),
                    Decides::Bit => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::Bit,
                        16
                    )),
                }
            }
            M::MuxV4i8 => {
                let (a, b, c) = (self.source(0)?, self.source(1)?, self.source(2)?);
                if self.ins.mux() == Decides::Neg {
                    map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::Neg,
                        8
                    ));
                } else {
                    map!(self, d, [a, b, c], |a, b, c| integer::mux(
                        a,
                        b,
                        c,
                        Mux::IntZero,
                        8
                    ));
                }
            }
            M::MovI32 => {
                let a = self.source(0)?;
                self.copy(a, d);
            }
            M::AndI32 => self.two(loops::two(
                #[inline(always)]
                |_, a, b| a & b,
            ))?,
            M::OrI32 => self.two(loops::two(
                #[inline(always)]
                |_, a, b| a | b,
            ))?,
            M::XorI32 => self.two(loops::two(
                #[inline(always)]
                |_, a, b| a ^ b,
            ))?,
            M::MkvecV2i16 => {
                let (a, b) = (self.source(0)?, self.source(1)?);
                match (
                    self.ins.lanes0() == Lanes::H1,
                    self.ins.lanes1() == Lanes::H1,
                ) {
                    (false, false) => map!(self, d, [a, b], |a, b| pack::mkvec_halves(
                        a, b, false, false
                    )),
                    (true, false) => map!(self, d, [a, b], |a, b| pack::mkvec_halves(
                        a, b, true, false
                    )),
                    (false, true) => map!(self, d, [a, b], |a, b| pack::mkvec_halves(
                        a, b, false, true
                    )),
                    (true, true) => {
                        map!(self, d, [a, b], |a, b| pack::mkvec_halves(a, b, true, true))
                    }
                }
            }
            M::MkvecV4i8 => {
                let sources = [
                    self.source(0)?,
                    self.source(1)?,
                    self.source(2)?,
                    self.source(3)?,
                ];
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
            }
            M::SwzV2i16 | M::SwzV4i8 => {
                let (a, lanes) = (self.source(0)?, self.ins.lanes0());
                let a = self.arranged(a, lanes, false)?;
                self.copy(a, d);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Emits a function of the two sources as they are.
    pub(super) fn two(&mut self, run: super::OnRows) -> Result<(), Trap> {
        let (d, sources) = (self.dest, [self.source(0)?, self.source(1)?]);
        self.rows(run, d, sources, 0);
        Ok(())
    }
}
