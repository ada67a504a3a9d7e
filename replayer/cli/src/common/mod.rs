// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several subcommands use.

pub(crate) mod analysis_file;
pub(crate) mod analysis_text;
pub(crate) mod arguments;
pub(crate) mod classification;
pub(crate) mod deep_report;
pub(crate) mod destinations;
pub(crate) mod edited;
pub(crate) mod evaluation;
pub(crate) mod failure;
pub(crate) mod fault_argument;
pub(crate) mod gpu_argument;
pub(crate) mod interrupt;
pub(crate) mod job_options;
pub(crate) mod job_tables;
pub(crate) mod job_trace;
pub(crate) mod job_watch;
pub(crate) mod layer_options;
pub(crate) mod listing;
pub(crate) mod load_speed;
pub(crate) mod machine_gpu;
pub(crate) mod model_options;
pub(crate) mod named_file;
pub(crate) mod new_directory;
pub(crate) mod new_recording;
pub(crate) mod noted;
pub(crate) mod page_options;
pub(crate) mod page_reads;
pub(crate) mod progress;
pub(crate) mod repeat;
pub(crate) mod run_report;
pub(crate) mod statistics;
pub(crate) mod steps;
pub(crate) mod tensor_arguments;
pub(crate) mod terminal;
pub(crate) mod trust_options;
