// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shifts, and additions of 64-bit addresses.

use gpureplay_shader::alu::lanes::Part;
use gpureplay_shader::alu::shift::{self, Counts, Double, Extend, Logic, Shift};
use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::elements::{After, Elements};
use gpureplay_shader::operations::loops;
use mali_isa::Lanes;
use mali_isa::Mnemonic as M;

use super::{Side, Translator, Trap};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Word,
    Half,
    Byte,
}

fn counts(width: Width, lanes: Lanes) -> Counts {
    match width {
        Width::Word => Counts::Word(match lanes {
            Lanes::B1 => 1,
            Lanes::B2 => 2,
            Lanes::B3 => 3,
            _ => 0,
        }),
        Width::Half => Counts::Half(match lanes {
            Lanes::B00 => [0, 0],
            Lanes::B11 => [1, 1],
            Lanes::B22 => [2, 2],
            Lanes::B33 => [3, 3],
            Lanes::B01 => [0, 1],
            Lanes::B23 => [2, 3],
            _ => [0, 2],
        }),
        Width::Byte => Counts::Byte(match lanes {
            Lanes::B0000 => [0; 4],
            Lanes::B1111 => [1; 4],
            Lanes::B2222 => [2; 4],
            Lanes::B3333 => [3; 4],
            _ => [0, 1, 2, 3],
        }),
    }
}

impl Translator<'_> {
    pub(super) fn double_upper(&mut self) -> Result<(), Trap> {
        let Side::Double { kind, bytes } = self.side else {
            return Err(self.trap("needs a 64-bit shift in the FMA unit of its tuple"));
        };
        let d = self.dest;
        let sources = [self.source(0)?, self.source(1)?, self.source(2)?];
        self.double_word(kind, bytes, true, d, sources);
        Ok(())
    }

    pub(super) fn funnel(&mut self, kind: Shift) -> Result<(), Trap> {
        let (d, m) = (self.dest, u32::from(self.ins.bytes2()));
        let (a, b, c) = (self.source(0)?, self.source(1)?, self.source(2)?);
        if kind == Shift::Left {
            rare!(self, d, [a, b, c], m, |m, a, b, c| shift::funnel_left(
                a,
                b,
                c,
                m != 0
            ));
        } else {
            rare!(self, d, [a, b, c], m, |m, a, b, c| shift::funnel_right(
                a,
                b,
                c,
                m != 0
            ));
        }
        Ok(())
    }

    pub(super) fn add_high_words(&mut self) -> Result<(), Trap> {
        let (offset, base) = (self.source(1)?, self.source(0)?);
        let row = self.add_high(offset, base)?;
        let d = self.dest;
        self.copy(row, d);
        Ok(())
    }

    pub(super) fn shift_and(
        &mut self,
        kind: Shift,
        after: After,
        width: Width,
    ) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b, c) = (self.source(0)?, self.source(1)?, self.source(2)?);
        let counts = counts(width, self.ins.lanes2());
        let not = [self.ins.not1(), self.ins.not_result()];
        let count = self
            .tuple
            .operand(self.unit, self.ins.sources[2])
            .and_then(|operand| operand.constant());
        let unshifted = counts == Counts::Word(0) && count.is_some_and(|count| count & 31 == 0);
        // The common way to write logic.
        if let (After::Logic(logic), true, [false, false]) = (after, unshifted, not) {
            match logic {
                Logic::And => map!(self, d, [a, b], |a, b| a & b),
                Logic::Or => map!(self, d, [a, b], |a, b| a | b),
                Logic::Xor => map!(self, d, [a, b], |a, b| a ^ b),
            }
            return Ok(());
        }
        self.shifted((kind, counts, after), d, [a, b, c], not)
    }

    pub(super) fn double(&mut self, kind: Double) -> Result<(), Trap> {
        let (low, high, count) = (self.source(0)?, self.source(1)?, self.source(2)?);
        let count = match self.ins.lanes2() {
            Lanes::B2 => self.part(count, Part::B2, false)?,
            _ => self.part(count, Part::B0, false)?,
        };
        let bytes = self.ins.bytes2();
        let upper = self.ins.result_word() == mali_isa::ResultWord::W1;
        let d = self.dest;
        self.side = Side::Double { kind, bytes };
        self.double_word(kind, bytes, upper, d, [low, high, count]);
        Ok(())
    }

    fn double_word(&mut self, kind: Double, bytes: bool, upper: bool, d: u16, sources: [u16; 3]) {
        let m = u32::from(bytes) | u32::from(upper) << 1;
        macro_rules! word {
            ($($path:ident)::+, $kind:ident) => {
                $($path)::+::three(
                    #[inline(always)]
                    |m, low, high, n| {
                        let (bytes, down) = (m & 1 != 0, (m & 2) << 4);
                        (shift::double(low, high, n, Double::$kind, bytes) >> down) as u32
                    },
                )
            };
        }
        let run = match kind {
            Double::Left => word!(loops, Left),
            Double::Right => word!(loops, Right),
            Double::Arithmetic => word!(loops, Arithmetic),
            Double::RotateLeft => word!(loops::rare, RotateLeft),
            Double::RotateRight => word!(loops::rare, RotateRight),
        };
        self.rows(run, d, sources, m);
    }

    /// The ADD instruction uses the high word's row.
    pub(super) fn add_low(&mut self, extend: Extend) -> Result<(), Trap> {
        let (a, b) = (self.source(0)?, self.source(1)?);
        let amount = u32::from(self.ins.immediate("shift").unwrap_or(0)) & 7;
        let part = match self.ins.lanes1() {
            Lanes::H0 => Part::H0,
            Lanes::H1 => Part::H1,
            _ => Part::Word,
        };
        let b = self.part(b, part, extend == Extend::S32)?;
        let completes = matches!(
            self.tuple.add.op.mnemonic(),
            M::ShaddxhI32
                | M::LoadI8
                | M::LoadI16
                | M::LoadI24
                | M::LoadI32
                | M::LoadI48
                | M::LoadI64
                | M::LoadI96
                | M::LoadI128
                | M::StoreI8
                | M::StoreI16
                | M::StoreI24
                | M::StoreI32
                | M::StoreI48
                | M::StoreI64
                | M::StoreI96
                | M::StoreI128
        );
        if completes {
            let carry = self.temporary()?;
            let high = if extend == Extend::S32 {
                loops::two(
                    #[inline(always)]
                    |n, a, b| shift::shaddxl(a, b, n, Extend::S32, Part::Word).1.high,
                )
            } else {
                loops::two(
                    #[inline(always)]
                    |n, a, b| shift::shaddxl(a, b, n, Extend::I64, Part::Word).1.high,
                )
            };
            self.rows(high, carry, [a, b], amount);
            self.side = Side::Address {
                carry,
                shift: (extend == Extend::I64).then_some(amount),
            };
        }
        let d = self.dest;
        self.rows(
            loops::two(
                #[inline(always)]
                |m, a, b| {
                    let n = m;
                    a.wrapping_add(b << n)
                },
            ),
            d,
            [a, b],
            amount,
        );
        Ok(())
    }

    pub(super) fn add_high(&mut self, shifted: u16, other: u16) -> Result<u16, Trap> {
        let Side::Address { carry, shift } = self.side else {
            return Err(self.trap("needs SHADDXL in the FMA unit of its tuple"));
        };
        let to = self.temporary()?;
        match shift {
            None => map!(self, to, [other, carry], |other, carry| other
                .wrapping_add(carry)),
            Some(amount) => self.rows(
                loops::three(
                    #[inline(always)]
                    |m, other, shifted, carry| {
                        let n = m;
                        other.wrapping_add(shifted << n).wrapping_add(carry)
                    },
                ),
                to,
                [other, shifted, carry],
                amount,
            ),
        }
        Ok(to)
    }
}
