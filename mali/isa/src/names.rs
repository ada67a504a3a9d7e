// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations, modifiers and their values, built from `table/*.isa`.

include!(concat!(env!("OUT_DIR"), "/names.rs"));
