// SPDX-License-Identifier: MIT OR Apache-2.0
//! Others' suites: piglit, Arm Compute Library.

pub(crate) mod operators;
pub(crate) mod piglit;
