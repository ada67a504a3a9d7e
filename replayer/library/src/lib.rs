// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays inside other programs.
//!
//! ```
//! use gpureplay_library::{Options, Recording};
//!
//! # fn main() -> gpureplay_library::Result<()> {
//! # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/saxpy-g52");
//! let recording = Recording::open(directory)?;
//! let mut session = recording.session(Options::default())?;
//! # session.bind_file("x", format!("{directory}/inputs/x.npy"))?;
//! # let y = std::path::Path::new(directory).join("inputs/y.npy");
//! session.bind_file("y", y)?;
//! session.run()?;
//! let out = session.read("out")?;
//! assert_eq!(out.shape(), [1000]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Recording`] is checked once; its copies are cheap, share its bytes, and threads may share them. A [`Session`]
//! is a device with the recording on it: one per thread, movable between threads. [`Session::run`] runs the whole
//! network, [`Session::run_layers`] a part, with tensors in between for the caller to read and replace.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bindings;
mod choice;
mod default_device;
pub mod device;
mod digest;
mod error;
pub mod expectation;
pub mod explain;
mod family;
pub mod files;
mod form;
pub mod host_rules;
pub mod json_path;
pub mod manifest;
mod model_options;
mod names;
mod number;
#[cfg(not(feature = "model"))]
#[path = "no_model.rs"]
mod on_model;
#[cfg(feature = "model")]
mod on_model;
mod package;
mod recording;
mod replay;
mod seal;
pub mod selection;
mod session;
mod signals;
mod state_rules;
mod states;
mod tensors;
pub mod text;
mod timing;
mod trust;
mod unfinished;
pub mod values;
pub mod variants;
pub mod weights;

pub use bindings::Bindings;
pub use device::{Device, ModelOptions};
pub use error::{Class, Error, Result};
pub use family::{NoChains, Verified};
pub use files::Files;
pub use gpureplay_format::TensorKind;
pub use gpureplay_host::{Existing, Lines, escaped, escaped_lines, shown};
pub use gpureplay_linux::optee::Canceller;
pub use gpureplay_tensors::{Element, ElementType, Tensor};
pub use mali_drive::Counters;
pub use manifest::Manifest;
pub use number::Number;
pub use package::open::read_named;
pub use recording::Recording;
pub use replay::{Recorded, Replay};
pub use seal::Seal;
pub use selection::Selection;
pub use session::{Options, Session};
pub use signals::HeldSignals;
pub use tensors::{Layer, TensorInfo, crossing, layer_named, layers_named, list};
pub use timing::{ChainSpan, Events, Phase, Timing, Transfer};
pub use trust::{MOST_KEY, Trust, write_error};
pub use unfinished::Unfinished;

/// Version of this library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
