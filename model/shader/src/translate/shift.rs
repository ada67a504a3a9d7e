// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shifts, and the 64-bit additions of address arithmetic.

use mali_isa::Lanes;
use mali_isa::Mnemonic as M;

use super::{Side, Translator, Trap};
use crate::alu::lanes::Part;
use crate::alu::shift::{self, Counts, Double, Extend, Logic, Shift, Sum};
use crate::operations::loops;

/// What an instruction does after it has shifted.
#[derive(Clone, Copy)]
enum After {
    Nothing,
    Logic(Logic),
    Sum(Sum),
}

/// Elements of a shift.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Word,
    Half,
    Byte,
}

fn shape(mnemonic: M) -> Option<(Shift, After, Width)> {
    use Logic::{And, Or, Xor};
    use Sum::{Add, ReverseSub, Sub};
    use Width::{Byte, Half, Word};
    let (left, right, arithmetic) = (Shift::Left, Shift::Right, Shift::Arithmetic);
    Some(match mnemonic {
        M::LshiftAndI32 => (left, After::Logic(And), Word),
        M::LshiftAndV2i16 => (left, After::Logic(And), Half),
        M::LshiftAndV4i8 => (left, After::Logic(And), Byte),
        M::LshiftOrI32 => (left, After::Logic(Or), Word),
        M::LshiftOrV2i16 => (left, After::Logic(Or), Half),
        M::LshiftOrV4i8 => (left, After::Logic(Or), Byte),
        M::LshiftXorI32 => (left, After::Logic(Xor), Word),
        M::LshiftXorV2i16 => (left, After::Logic(Xor), Half),
        M::LshiftXorV4i8 => (left, After::Logic(Xor), Byte),
        M::RshiftAndI32 => (right, After::Logic(And), Word),
        M::RshiftAndV2i16 => (right, After::Logic(And), Half),
        M::RshiftAndV4i8 => (right, After::Logic(And), Byte),
        M::RshiftOrI32 => (right, After::Logic(Or), Word),
        M::RshiftOrV2i16 => (right, After::Logic(Or), Half),
        M::RshiftOrV4i8 => (right, After::Logic(Or), Byte),
        M::RshiftXorI32 => (right, After::Logic(Xor), Word),
        M::RshiftXorV2i16 => (right, After::Logic(Xor), Half),
        M::RshiftXorV4i8 => (right, After::Logic(Xor), Byte),
        M::LshiftAddI32 => (left, After::Sum(Add), Word),
        M::LshiftAddV2i16 => (left, After::Sum(Add), Half),
        M::LshiftAddV4i8 => (left, After::Sum(Add), Byte),
        M::LshiftSubI32 => (left, After::Sum(Sub), Word),
        M::LshiftSubV2i16 => (left, After::Sum(Sub), Half),
        M::LshiftSubV4i8 => (left, After::Sum(Sub), Byte),
        M::LshiftRsubI32 => (left, After::Sum(ReverseSub), Word),
        M::LshiftRsubV2i16 => (left, After::Sum(ReverseSub), Half),
        M::LshiftRsubV4i8 => (left, After::Sum(ReverseSub), Byte),
        M::RshiftAddI32 => (right, After::Sum(Add), Word),
        M::RshiftAddV2i16 => (right, After::Sum(Add), Half),
        M::RshiftAddV4i8 => (right, After::Sum(Add), Byte),
        M::RshiftSubI32 => (right, After::Sum(Sub), Word),
        M::RshiftSubV2i16 => (right, After::Sum(Sub), Half),
        M::RshiftSubV4i8 => (right, After::Sum(Sub), Byte),
        M::RshiftRsubI32 => (right, After::Sum(ReverseSub), Word),
        M::RshiftRsubV2i16 => (right, After::Sum(ReverseSub), Half),
        M::RshiftRsubV4i8 => (right, After::Sum(ReverseSub), Byte),
        M::ArshiftAddI32 => (arithmetic, After::Sum(Add), Word),
        M::ArshiftAddV2i16 => (arithmetic, After::Sum(Add), Half),
        M::ArshiftAddV4i8 => (arithmetic, After::Sum(Add), Byte),
        M::ArshiftSubI32 => (arithmetic, After::Sum(Sub), Word),
        M::ArshiftSubV2i16 => (arithmetic, After::Sum(Sub), Half),
        M::ArshiftSubV4i8 => (arithmetic, After::Sum(Sub), Byte),
        M::ArshiftRsubI32 => (arithmetic, After::Sum(ReverseSub), Word),
        M::ArshiftRsubV2i16 => (arithmetic, After::Sum(ReverseSub), Half),
        M::ArshiftRsubV4i8 => (arithmetic, After::Sum(ReverseSub), Byte),
        M::ArshiftV2i16 => (arithmetic, After::Nothing, Half),
        M::ArshiftV4i8 => (arithmetic, After::Nothing, Byte),
        _ => return None,
    })
}

fn double(mnemonic: M) -> Option<Double> {
    Some(match mnemonic {
        M::LshiftDoubleI32 => Double::Left,
        M::RshiftDoubleI32 => Double::Right,
        M::ArshiftDoubleI32 => Double::Arithmetic,
        M::LrotDoubleI32 => Double::RotateLeft,
        M::RrotDoubleI32 => Double::RotateRight,
        _ => return None,
    })
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
    pub(super) fn shift(&mut self) -> Result<bool, Trap> {
        let mnemonic = self.ins.op.mnemonic();
        if let Some((kind, after, width)) = shape(mnemonic) {
            self.shift_and(kind, after, width)?;
            return Ok(true);
        }
        if let Some(kind) = double(mnemonic) {
            self.double(kind)?;
            return Ok(true);
        }
        match mnemonic {
            // On the FMA unit the shift comes third, on the ADD unit second.
            M::ArshiftI32 if self.ins.sources().len() == 3 => {
                self.shift_and(Shift::Arithmetic, After::Nothing, Width::Word)?;
            }
            M::ArshiftI32 => self.two(loops::two(
                #[inline(always)]
                |_, a, n| ((a as i32) >> (n & 31)) as u32,
            ))?,
            M::LshiftI32 => self.two(loops::two(
                #[inline(always)]
                |_, a, n| a << (n & 31),
            ))?,
            M::RshiftI32 => self.two(loops::two(
                #[inline(always)]
                |_, a, n| a >> (n & 31),
            ))?,
            M::ShiftDoubleI32 => {
                let Side::Double { kind, bytes } = self.side else {
                    return Err(self.trap("needs a 64-bit shift in the FMA unit of its tuple"));
                };
                let d = self.dest;
                let sources = [self.source(0)?, self.source(1)?, self.source(2)?];
                self.double_word(kind, bytes, true, d, sources);
            }
            M::FlshiftDoubleI32 => {
                if self.ins.bytes2() {
                    self.three(
                        self.dest,
                        loops::three(
                            #[inline(always)]
                            |_, a, b, c| shift::funnel_left(a, b, c, true),
                        ),
                    )?;
                } else {
                    self.three(
                        self.dest,
                        loops::three(
                            #[inline(always)]
                            |_, a, b, c| shift::funnel_left(a, b, c, false),
                        ),
                    )?;
                }
            }
            M::FrshiftDoubleI32 => {
                if self.ins.bytes2() {
                    self.three(
                        self.dest,
                        loops::three(
                            #[inline(always)]
                            |_, a, b, c| shift::funnel_right(a, b, c, true),
                        ),
                    )?;
                } else {
                    self.three(
                        self.dest,
                        loops::three(
                            #[inline(always)]
                            |_, a, b, c| shift::funnel_right(a, b, c, false),
                        ),
                    )?;
                }
            }
            M::ShaddxlI64 | M::ShaddxlU32 | M::ShaddxlS32 => self.add_low()?,
            M::ShaddxhI32 => {
                let (offset, base) = (self.source(1)?, self.source(0)?);
                let row = self.add_high(offset, base)?;
                let d = self.dest;
                self.copy(row, d);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn shift_and(&mut self, kind: Shift, after: After, width: Width) -> Result<(), Trap> {
        let d = self.dest;
        let (a, b, c) = (self.source(0)?, self.source(1)?, self.source(2)?);
        let counts = counts(width, self.ins.lanes2());
        let not_other = if self.ins.not1() { u32::MAX } else { 0 };
        let not_result = if self.ins.not_result() { u32::MAX } else { 0 };
        let count = self
            .tuple
            .operand(self.unit, self.ins.sources[2])
            .and_then(|operand| operand.constant());
        let unshifted = counts == Counts::Word(0) && count.is_some_and(|count| count & 31 == 0);
        // A logic operation with a shift by nothing is the common way to write that operation.
        if let (After::Logic(logic), true, 0, 0) = (after, unshifted, not_other, not_result) {
            match logic {
                Logic::And => map!(self, d, [a, b], |a, b| a & b),
                Logic::Or => map!(self, d, [a, b], |a, b| a | b),
                Logic::Xor => map!(self, d, [a, b], |a, b| a ^ b),
            }
            return Ok(());
        }
        if let (After::Logic(Logic::Or), Counts::Word(0), 0, 0) =
            (after, counts, not_other, not_result)
        {
            match kind {
                Shift::Left => map!(self, d, [a, b, c], |a, b, c| a << (c & 31) | b),
                Shift::Right => map!(self, d, [a, b, c], |a, b, c| a >> (c & 31) | b),
                Shift::Arithmetic => map!(self, d, [a, b, c], |a, b, c| {
                    ((a as i32) >> (c & 31)) as u32 | b
                }),
            }
            return Ok(());
        }
        let shifted = self.temporary()?;
        let m = match counts {
            Counts::Word(lane) => u32::from(lane),
            Counts::Half([low, high]) => u32::from(low) | u32::from(high) << 2,
            Counts::Byte(lanes) => lanes
                .iter()
                .rev()
                .fold(0, |m, &lane| m << 2 | u32::from(lane)),
        };
        match width {
            Width::Word => each!(kind, KIND: Shift { Left, Right, Arithmetic } => self.rows(
                loops::two(#[inline(always)] |m, x, n| { let lane = m as u8; shift::shift(x, n, KIND, Counts::Word(lane)) }),
                shifted, [a, c], m,
            )),
            Width::Half => each!(kind, KIND: Shift { Left, Right, Arithmetic } => self.rows(
                loops::two(#[inline(always)] |m, x, n| { let lanes = [m as u8 & 3, (m >> 2) as u8 & 3]; shift::shift(x, n, KIND, Counts::Half(lanes)) }),
                shifted, [a, c], m,
            )),
            Width::Byte => each!(kind, KIND: Shift { Left, Right, Arithmetic } => self.rows(
                loops::two(#[inline(always)] |m, x, n| { let lanes = [0, 2, 4, 6].map(|at| (m >> at) as u8 & 3); shift::shift(x, n, KIND, Counts::Byte(lanes)) }),
                shifted, [a, c], m,
            )),
        }
        match after {
            After::Nothing => self.copy(shifted, d),
            After::Logic(logic) => {
                let (other, result) = (self.number(not_other), self.number(not_result));
                match logic {
                    Logic::And => map!(self, d, [shifted, b, other, result], |x, b, n, r| (x
                        & (b ^ n))
                        ^ r),
                    Logic::Or => map!(self, d, [shifted, b, other, result], |x, b, n, r| (x
                        | (b ^ n))
                        ^ r),
                    Logic::Xor => map!(self, d, [shifted, b, other, result], |x, b, n, r| (x
                        ^ (b ^ n))
                        ^ r),
                }
            }
            After::Sum(sum) => self.sum(sum, width, d, shifted, b),
        }
        Ok(())
    }

    /// A sum of elements.
    fn sum(&mut self, sum: Sum, width: Width, d: u16, shifted: u16, other: u16) {
        use crate::alu::integer::{Element, iadd, isub};
        let (a, b) = if let Sum::ReverseSub = sum {
            (other, shifted)
        } else {
            (shifted, other)
        };
        match (sum, width) {
            (Sum::Add, Width::Word) => map!(self, d, [a, b], |a, b| a.wrapping_add(b)),
            (Sum::Add, Width::Half) => {
                map!(self, d, [a, b], |a, b| iadd(a, b, Element::U16, false))
            }
            (Sum::Add, Width::Byte) => map!(self, d, [a, b], |a, b| iadd(a, b, Element::U8, false)),
            (_, Width::Word) => map!(self, d, [a, b], |a, b| a.wrapping_sub(b)),
            (_, Width::Half) => map!(self, d, [a, b], |a, b| isub(a, b, Element::U16, false)),
            (_, Width::Byte) => map!(self, d, [a, b], |a, b| isub(a, b, Element::U8, false)),
        }
    }

    fn double(&mut self, kind: Double) -> Result<(), Trap> {
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
        each!(kind, KIND: Double { Left, Right, Arithmetic, RotateLeft, RotateRight } => self.rows(
            loops::three(#[inline(always)] |m, low, high, n| { let (bytes, down) = (m & 1 != 0, (m & 2) << 4); (shift::double(low, high, n, KIND, bytes) >> down) as u32 }),
            d, sources, m,
        ));
    }

    /// `SHADDXL`: the low word now, what goes to the high word into a row that the ADD instruction uses.
    fn add_low(&mut self) -> Result<(), Trap> {
        let (a, b) = (self.source(0)?, self.source(1)?);
        let amount = u32::from(self.ins.immediate("shift").unwrap_or(0)) & 7;
        let extend = match self.ins.op.mnemonic() {
            M::ShaddxlI64 => Extend::I64,
            M::ShaddxlS32 => Extend::S32,
            _ => Extend::U32,
        };
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
            if extend == Extend::S32 {
                self.rows(
                    loops::two(
                        #[inline(always)]
                        |m, a, b| {
                            let n = m;
                            shift::shaddxl(a, b, n, Extend::S32, Part::Word).1.high
                        },
                    ),
                    carry,
                    [a, b],
                    amount,
                );
            } else {
                self.rows(
                    loops::two(
                        #[inline(always)]
                        |m, a, b| {
                            let n = m;
                            shift::shaddxl(a, b, n, Extend::I64, Part::Word).1.high
                        },
                    ),
                    carry,
                    [a, b],
                    amount,
                );
            }
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

    /// The high word of the sum that `SHADDXL` began: of the high words of the shifted operand and of the other.
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
