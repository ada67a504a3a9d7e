// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays recorded launches of CUDA kernels.
//!
//! A [`Session`] maps memory at recorded addresses; [`Session::load`] rewrites pointers to variables, which move
//! between processes; [`Session::run`] launches. A result counts only if launching nothing fails the same
//! comparison ([`Verdict`]); else [`Session::poison`] finds words to change first.
//!
//! A [`RunSession`] replays a whole run; programs use [`embed`].

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
