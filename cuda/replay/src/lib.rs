// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a recorded launch of a CUDA kernel in a process of its own.
//!
//! A [`Session`] puts memory back at the recorded addresses. [`Session::load`] loads an image and rewrites pointers
//! to variables, which move from process to process. [`Session::run`] launches. A result counts only if a replay
//! that launches nothing fails the same comparison ([`Verdict`]). Where it passes, [`Session::poison`] finds words
//! to change before the launch.
//!
//! A [`RunSession`] does the same with a whole run, with recorded inputs or others. Programs use [`embed`].

#![cfg_attr(
    not(feature = "command"),
    allow(
        dead_code,
        reason = "the commands use it: a build with them warns of what nothing uses"
    )
)]

mod analysis;
#[cfg(feature = "command")]
pub mod command;
mod compare;
pub mod embed;
mod error;
mod failure;
mod gpu;
mod layers;
mod limits;
mod module;
mod number;
mod place;
mod poison;
mod reaction;
mod relocate;
mod room;
mod run;
mod session;
mod signature;
mod sum;
mod target;
mod timing;
mod variation;
mod weights;
mod whereabouts;

pub use gpureplay_cuda_launch::abi::JitOptions;

pub use analysis::{Analysis, CELLS, COUNTERS, Fault, Finding, Wanted};
pub use compare::{Comparison, Differing, Element, Verdict};
pub use error::ReplayError;
pub use gpu::{Gpu, GpuInfo};
pub use limits::{Limits, OpenMp, Refusal, Sizes};
pub use module::Loaded;
pub use poison::Poison;
pub use reaction::Reaction;
pub use run::{Crossing, Held, How, LeftOut, Range, RunSession, WeightBytes, Weights, cross};
pub use session::{Differences, Left, Mask, Second, Session, Strays, Useless};
pub use timing::Times;
pub use variation::Variation;
pub use whereabouts::{Pieces, Whereabouts};
