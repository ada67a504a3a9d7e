// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer operations that instruction sets share.

use super::Emit;
use crate::alu::integer::{self, Element, Mux};
use crate::alu::shift::{self, Counts, Logic, Shift, Sum};
use crate::alu::{Compare, Truth};
use crate::ir::Trap;
use crate::ir::micro::{Kind, OnRows};
use crate::operations::loops;

/// What follows a shift.
#[derive(Clone, Copy)]
pub enum After {
    /// Its result stays.
    Nothing,
    /// A bitwise operation.
    Logic(Logic),
    /// A sum.
    Sum(Sum),
}

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

macro_rules! shifts {
    ($kind:expr, |$m:ident| $counts:expr) => {
        match $kind {
            Shift::Left => shifts!(Left, $m, $counts),
            Shift::Right => shifts!(Right, $m, $counts),
            Shift::Arithmetic => shifts!(Arithmetic, $m, $counts),
        }
    };
    ($kind:ident, $m:ident, $counts:expr) => {
        loops::two(
            #[inline(always)]
            |$m, x, n| shift::shift(x, n, Shift::$kind, $counts),
        )
    };
}

/// Of a comparison that holds everywhere.
pub fn true_word(truth: Truth, element: Element) -> u32 {
    match element {
        Element::S32 | Element::U32 => truth.word(true),
        Element::S16 | Element::U16 => u32::from(truth.half(true)) * 0x1_0001,
        Element::S8 | Element::U8 => u32::from(truth.byte(true)) * 0x101_0101,
    }
}

/// Words, halves and bytes.
pub trait Elements: Emit {
    /// Adds or subtracts elements, modulo the width or saturated.
    fn sum(
        &mut self,
        subtracts: bool,
        element: Element,
        saturates: bool,
        d: u16,
        [a, b]: [u16; 2],
    ) {
        match (subtracts, saturates, element.unsigned()) {
            (false, true, _) => rare!(self, d, [a, b], element as u32, |m, a, b| {
                integer::iadd(a, b, Element::numbered(m), true)
            }),
            (true, true, _) => rare!(self, d, [a, b], element as u32, |m, a, b| {
                integer::isub(a, b, Element::numbered(m), true)
            }),
            (false, _, Element::U16) => {
                map!(self, d, [a, b], |a, b| integer::iadd(
                    a,
                    b,
                    Element::U16,
                    false
                ));
            }
            (false, _, Element::U8) => {
                map!(self, d, [a, b], |a, b| integer::iadd(
                    a,
                    b,
                    Element::U8,
                    false
                ));
            }
            (false, ..) => {
                map!(self, d, [a, b], |a, b| a.wrapping_add(b));
                self.known_as(Kind::Add);
            }
            (true, _, Element::U16) => {
                map!(self, d, [a, b], |a, b| integer::isub(
                    a,
                    b,
                    Element::U16,
                    false
                ));
            }
            (true, _, Element::U8) => {
                map!(self, d, [a, b], |a, b| integer::isub(
                    a,
                    b,
                    Element::U8,
                    false
                ));
            }
            (true, ..) => map!(self, d, [a, b], |a, b| a.wrapping_sub(b)),
        }
    }

    /// Half the sum, rounded up or down.
    fn half_sum(&mut self, element: Element, up: bool, d: u16, [a, b]: [u16; 2]) {
        let m = element as u32 | u32::from(up) << 3;
        rare!(self, d, [a, b], m, |m, a, b| {
            integer::hadd(a, b, Element::numbered(m & 7), m >> 3 != 0)
        });
    }

    /// Multiplies elements, modulo the width.
    fn product(&mut self, element: Element, d: u16, [a, b]: [u16; 2]) {
        match element.unsigned() {
            Element::U16 => {
                map!(self, d, [a, b], |a, b| integer::imul(a, b, Element::U16));
            }
            Element::U8 => {
                map!(self, d, [a, b], |a, b| integer::imul(a, b, Element::U8));
            }
            _ => map!(self, d, [a, b], |a, b| a.wrapping_mul(b)),
        }
    }

    /// Absolute value.
    fn absolute(&mut self, element: Element, d: u16, a: u16) {
        if element == Element::S32 {
            map!(self, d, [a], |a| integer::iabs(a, Element::S32));
        } else {
            rare!(self, d, [a], element as u32, |m, a| {
                integer::iabs(a, Element::numbered(m))
            });
        }
    }

    /// Zeros above the first one.
    fn leading_zeros(&mut self, element: Element, d: u16, a: u16) {
        if element == Element::U32 {
            map!(self, d, [a], |a| integer::clz(a, Element::U32));
        } else {
            rare!(self, d, [a], element as u32, |m, a| {
                integer::clz(a, Element::numbered(m))
            });
        }
    }

    /// Of four bytes.
    fn dot_product(&mut self, signed: [bool; 2], d: u16, [a, b]: [u16; 2]) {
        match signed {
            [true, true] => map!(self, d, [a, b], |a, b| integer::idp(a, b, true, true)),
            [false, false] => map!(self, d, [a, b], |a, b| integer::idp(a, b, false, false)),
            [true, false] => rare!(self, d, [a, b], 0, |_, a, b| integer::idp(
                a, b, true, false
            )),
            [false, true] => rare!(self, d, [a, b], 0, |_, a, b| integer::idp(
                a, b, false, true
            )),
        }
    }

    /// Compares elements; true is `m`.
    fn compare_integers(
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

    /// Selects by comparing.
    fn select_integers(&mut self, d: u16, sources: [u16; 4], element: Element, how: Compare) {
        let Some((equal, sources)) = equal_or_above(how, sources) else {
            self.copy(sources[2], d);
            return;
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
    }

    /// First or second row, by the third.
    fn multiplex(&mut self, mux: Mux, bits: u32, d: u16, [a, b, c]: [u16; 3]) {
        macro_rules! chosen {
            ($bits:literal) => {
                each!(mux, MUX: Mux { Neg, IntZero, FpZero, Bit } => {
                    map!(self, d, [a, b, c], |a, b, c| integer::mux(a, b, c, MUX, $bits));
                })
            };
        }
        match bits {
            8 if mux == Mux::Neg => {
                map!(self, d, [a, b, c], |a, b, c| integer::mux(
                    a,
                    b,
                    c,
                    Mux::Neg,
                    8
                ));
            }
            8 => map!(self, d, [a, b, c], |a, b, c| integer::mux(
                a,
                b,
                c,
                Mux::IntZero,
                8
            )),
            16 => chosen!(16),
            _ => chosen!(32),
        }
    }

    /// Shifts `a`, combines it with `b`; `b` and the result may be complemented.
    fn shifted(
        &mut self,
        (kind, counts, after): (Shift, Counts, After),
        d: u16,
        [a, b, count]: [u16; 3],
        [not_other, not_result]: [bool; 2],
    ) -> Result<(), Trap> {
        if let (After::Logic(Logic::Or), Counts::Word(0), false, false) =
            (after, counts, not_other, not_result)
        {
            match kind {
                Shift::Left => map!(self, d, [a, b, count], |a, b, n| a << (n & 31) | b),
                Shift::Right => map!(self, d, [a, b, count], |a, b, n| a >> (n & 31) | b),
                Shift::Arithmetic => map!(self, d, [a, b, count], |a, b, n| {
                    ((a as i32) >> (n & 31)) as u32 | b
                }),
            }
            return Ok(());
        }
        let shifted = self.temporary()?;
        let (run, m) = match counts {
            Counts::Word(lane) => (shifts!(kind, |m| Counts::Word(m as u8)), u32::from(lane)),
            Counts::Half([low, high]) => (
                shifts!(kind, |m| Counts::Half([m as u8 & 3, (m >> 2) as u8 & 3])),
                u32::from(low) | u32::from(high) << 2,
            ),
            Counts::Byte(lanes) => (
                shifts!(kind, |m| Counts::Byte(
                    [0, 2, 4, 6].map(|at| (m >> at) as u8 & 3)
                )),
                lanes
                    .iter()
                    .rev()
                    .fold(0, |m, &lane| m << 2 | u32::from(lane)),
            ),
        };
        self.rows(run, shifted, [a, count], m);
        self.after(after, counts, d, [shifted, b], [not_other, not_result]);
        Ok(())
    }

    /// Combines a shifted source with `b`.
    fn after(&mut self, after: After, counts: Counts, d: u16, [x, b]: [u16; 2], not: [bool; 2]) {
        match after {
            After::Nothing => self.copy(x, d),
            After::Logic(logic) => {
                let [other, result] = not.map(|not| self.number(if not { u32::MAX } else { 0 }));
                match logic {
                    Logic::And => map!(self, d, [x, b, other, result], |x, b, n, r| (x & (b ^ n))
                        ^ r),
                    Logic::Or => map!(self, d, [x, b, other, result], |x, b, n, r| (x | (b ^ n))
                        ^ r),
                    Logic::Xor => map!(self, d, [x, b, other, result], |x, b, n, r| (x ^ (b ^ n))
                        ^ r),
                }
            }
            After::Sum(sum) => {
                let element = match counts {
                    Counts::Word(_) => Element::U32,
                    Counts::Half(_) => Element::U16,
                    Counts::Byte(_) => Element::U8,
                };
                match sum {
                    Sum::Add => self.sum(false, element, false, d, [x, b]),
                    Sum::Sub => self.sum(true, element, false, d, [x, b]),
                    Sum::ReverseSub => self.sum(true, element, false, d, [b, x]),
                }
            }
        }
    }
}

impl<T: Emit> Elements for T {}

/// Equality (true) or above, by exchanging operands or results. `None`: always true.
fn equal_or_above(how: Compare, [a, b, c, e]: [u16; 4]) -> Option<(bool, [u16; 4])> {
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
