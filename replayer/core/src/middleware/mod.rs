// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices around devices: to watch one, to disturb one, to compare two.

mod diff;
mod faulty;
mod trace;

pub use diff::{Diff, Divergence};
pub use faulty::{FaultKind, Faulty};
pub use trace::{Call, Trace};
