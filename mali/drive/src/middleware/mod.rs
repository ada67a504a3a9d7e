// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices around Mali devices: disturb, compare.

mod diff;
mod faulty;

pub use diff::{Diff, Divergence};
pub use faulty::{FaultKind, Faulty};
