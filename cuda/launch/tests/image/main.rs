// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading images, refusals, and costs.
#![allow(clippy::unwrap_used)]

mod bounded;
mod damaged;
mod golden;
