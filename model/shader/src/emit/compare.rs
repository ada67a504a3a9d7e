// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops for comparisons of numbers.

macro_rules! compare_numbers {
    ($how:expr, $alu:ident) => {
        match $how {
            Compare::Eq => loops::two(
                #[inline(always)]
                |m, a, b| $alu::fcmp(a, b, Compare::Eq, Truth::M1) & m,
            ),
            Compare::Ne => loops::two(
                #[inline(always)]
                |m, a, b| $alu::fcmp(a, b, Compare::Ne, Truth::M1) & m,
            ),
            Compare::Gt | Compare::Lt => loops::two(
                #[inline(always)]
                |m, a, b| $alu::fcmp(a, b, Compare::Gt, Truth::M1) & m,
            ),
            Compare::Ge | Compare::Le => loops::two(
                #[inline(always)]
                |m, a, b| $alu::fcmp(a, b, Compare::Ge, Truth::M1) & m,
            ),
            Compare::GtLt => {
                loops::rare::two(|m, a, b| $alu::fcmp(a, b, Compare::GtLt, Truth::M1) & m)
            }
            Compare::Total => {
                loops::rare::two(|m, a, b| $alu::fcmp(a, b, Compare::Total, Truth::M1) & m)
            }
        }
    };
}

macro_rules! select_numbers {
    ($how:expr, $alu:ident) => {
        match $how {
            Compare::Eq | Compare::Ne => loops::four(
                #[inline(always)]
                |_, a, b, c, e| $alu::csel(a, b, c, e, Compare::Eq),
            ),
            Compare::Gt | Compare::Lt => loops::four(
                #[inline(always)]
                |_, a, b, c, e| $alu::csel(a, b, c, e, Compare::Gt),
            ),
            Compare::Ge | Compare::Le => loops::four(
                #[inline(always)]
                |_, a, b, c, e| $alu::csel(a, b, c, e, Compare::Ge),
            ),
            Compare::GtLt => {
                loops::rare::four(|_, a, b, c, e| $alu::csel(a, b, c, e, Compare::GtLt))
            }
            Compare::Total => {
                loops::rare::four(|_, a, b, c, e| $alu::csel(a, b, c, e, Compare::Total))
            }
        }
    };
}

pub(crate) use compare_numbers;
pub(super) use select_numbers;
