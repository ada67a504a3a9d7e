// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites of others: piglit's OpenCL tests, Arm Compute Library's operators.

pub(crate) mod operators;
pub(crate) mod piglit;
