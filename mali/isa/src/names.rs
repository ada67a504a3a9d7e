// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the instruction table's operations, modifiers and their values are called: enums, made by the build script from
//! `table/*.isa`.

include!(concat!(env!("OUT_DIR"), "/names.rs"));
