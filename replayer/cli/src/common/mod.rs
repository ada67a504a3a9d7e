// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several subcommands use.

pub(crate) mod arguments;
pub(crate) mod classification;
pub(crate) mod deep_report;
pub(crate) mod destinations;
pub(crate) mod expectations;
pub(crate) mod failure;
pub(crate) mod held_signals;
pub(crate) mod job_trace;
pub(crate) mod layer_options;
pub(crate) mod load_speed;
pub(crate) mod model_options;
pub(crate) mod new_recording;
pub(crate) mod noted;
pub(crate) mod page_reads;
pub(crate) mod phases;
pub(crate) mod progress;
pub(crate) mod recording_source;
pub(crate) mod replay;
pub(crate) mod run_report;
pub(crate) mod shaders;
pub(crate) mod signed_files;
pub(crate) mod tensor_arguments;
pub(crate) mod terminal;
