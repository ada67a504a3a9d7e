// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short trials, and promises of documents.
#![allow(clippy::unwrap_used)]

mod defects;
mod overflow;
mod quick;
mod specification;
