// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic of lanes: a pure function per operation, on bit patterns.
//!
//! Without data-dependent branches, so loops over lanes become vector code.
//!
//! Choices that no public source settles:
//! * An arithmetic NaN is the quiet NaN `0x7fc0_0000` (`0x7e00` in half precision), whatever the host.
//! * Functions that hardware computes from tables are correctly rounded. Silicon may differ in the last place.
//! * Of two zeros the maximum is `+0` and the minimum `-0`.

pub mod convert;
pub mod cube;
pub mod float;
pub mod half;
pub mod integer;
pub mod lanes;
pub mod pack;
pub mod power;
pub mod rounding;
pub mod scale;
pub mod shift;
pub mod special;

/// Rounding of an inexact result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Round {
    /// To nearest even (`none` in the instruction tables).
    #[default]
    Even,
    /// Towards plus infinity (`rtp`).
    Up,
    /// Towards minus infinity (`rtn`).
    Down,
    /// Towards zero (`rtz`).
    Zero,
    /// To nearest, ties away from zero (`rtna`).
    Away,
    /// To odd: an inexact result's last bit is set (`rto`).
    Odd,
}

impl Round {
    /// All, by number.
    pub const ALL: [Round; 6] = [
        Round::Even,
        Round::Up,
        Round::Down,
        Round::Zero,
        Round::Away,
        Round::Odd,
    ];

    /// By `round as u32`, modulo their count.
    #[inline(always)]
    pub const fn numbered(number: u32) -> Round {
        Round::ALL[number as usize % Round::ALL.len()]
    }
}

/// Limits after rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clamp {
    /// No limit.
    #[default]
    None,
    /// `[0, inf]`; NaN becomes 0.
    ZeroInf,
    /// `[-1, 1]`; NaN becomes 0.
    MinusOneOne,
    /// `[0, 1]`; NaN becomes 0.
    ZeroOne,
}

/// NaN in minima and maxima (`sem` in the instruction tables).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nan {
    /// The number wins (`nan_suppress`).
    #[default]
    Suppress,
    /// NaN wins (`nan_propagate`).
    Propagate,
    /// As C's `a < b ? a : b` (`c`): second if unordered.
    C,
    /// As `b < a ? b : a` (`inverse_c`): first if unordered.
    InverseC,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Equal.
    Eq,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Not equal or unordered.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Less or greater, ordered.
    GtLt,
    /// Ordered: neither operand is NaN.
    Total,
}

impl Compare {
    /// Never [`Compare::Lt`] or [`Compare::Le`]; whether operands are exchanged.
    pub const fn turned(self) -> (Compare, bool) {
        match self {
            Compare::Lt => (Compare::Gt, true),
            Compare::Le => (Compare::Ge, true),
            other => (other, false),
        }
    }
}

/// A comparison's "true".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Truth {
    /// The integer 1.
    #[default]
    I1,
    /// 1.0 of the operands' width.
    F1,
    /// All bits set.
    M1,
}

impl Truth {
    /// The 32-bit pattern.
    #[inline(always)]
    pub const fn word(self, yes: bool) -> u32 {
        let mask = (yes as u32).wrapping_neg();
        mask & match self {
            Truth::I1 => 1,
            Truth::F1 => 0x3f80_0000,
            Truth::M1 => u32::MAX,
        }
    }

    /// The 16-bit pattern.
    #[inline(always)]
    pub const fn half(self, yes: bool) -> u16 {
        let mask = (yes as u16).wrapping_neg();
        mask & match self {
            Truth::I1 => 1,
            Truth::F1 => 0x3c00,
            Truth::M1 => u16::MAX,
        }
    }

    /// The 8-bit pattern.
    #[inline(always)]
    pub const fn byte(self, yes: bool) -> u8 {
        let mask = (yes as u8).wrapping_neg();
        mask & match self {
            Truth::I1 | Truth::F1 => 1,
            Truth::M1 => u8::MAX,
        }
    }
}
