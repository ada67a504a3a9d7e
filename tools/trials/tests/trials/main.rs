// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short trials, and what documents promise about them.
#![allow(clippy::unwrap_used)]

mod defects;
mod overflow;
mod quick;
mod specification;
