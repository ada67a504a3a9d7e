// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders: fetched, decoded, translated, kept.

mod cache;
mod decode;

pub(crate) use cache::{Cache, Own};
pub(crate) use decode::clause;
