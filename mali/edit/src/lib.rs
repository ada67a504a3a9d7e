// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes recordings apart and changes them.
//!
//! A [`Scene`] is a job with its memory from a replay on the model. [`extract()`] makes it a recording; a [`Subject`]
//! tries other sizes or shaders and changes the recording.
#![forbid(unsafe_code)]

mod addition;
mod change;
mod effects;
mod error;
mod extract;
mod flow;
mod footprint;
mod inputs;
pub mod interface;
mod kernel;
pub mod launch;
mod pointers;
mod proof;
mod provenance;
mod scene;
pub mod shader;
mod taken;
mod target;
mod tensors;
pub mod tune;
mod words;

pub use change::{Change, Changed, Subject, Tried};
pub use effects::constant_outputs;
pub use error::{EditError, Result};
pub use extract::{Extracted, extract};
pub use flow::Flow;
pub use footprint::{Bytes, Footprint};
pub use inputs::inputs;
pub use interface::Interface;
pub use kernel::{Kernel, ShaderFile};
pub use launch::Launch;
pub use pointers::Pair;
pub use proof::Proof;
pub use provenance::edited;
pub use scene::{Memory, Outcome, Scene, Submit, Work};
pub use taken::Taken;
