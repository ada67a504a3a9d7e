// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's raw trace, read and decoded.
