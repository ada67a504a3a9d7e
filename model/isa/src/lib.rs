// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bifrost instructions: one table, decode, encode, disassemble.
