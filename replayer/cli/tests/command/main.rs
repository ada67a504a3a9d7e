// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `gpureplay`, as users run it.
#![allow(clippy::unwrap_used)]

mod analyse;
mod basics;
mod bounded;
mod compile;
mod constant;
mod digits;
mod everyday;
mod extract;
mod faults;
mod hostile;
mod kbase;
mod layers;
mod limits;
mod links;
mod many;
mod misuse;
mod old_names;
mod originals;
mod patch;
mod ranking;
mod retarget;
mod schema;
mod schema_check;
mod shipped;
mod start;
mod state;
mod streams;
mod timeline;
mod trace;
mod trust;
mod user_files;
mod valhall;
mod values;
mod variants;
