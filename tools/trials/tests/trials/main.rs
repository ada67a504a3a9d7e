// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trials in short versions, and what documents and manifests promise about them.
#![allow(clippy::unwrap_used)]

mod defects;
mod overflow;
mod quick;
mod specification;
