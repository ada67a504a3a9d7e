// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface: `include/gpureplay.h` is made from this crate.
//!
//! Pointers are checked for null, names and paths for UTF-8, sizes against the tensor's. A panic becomes
//! `GPUREPLAY_STATUS_PANIC`, and its session refuses further work.

mod guard;
#[cfg(not(feature = "cuda"))]
mod no_cuda;
mod recording;
mod session;
mod types;

pub use guard::{gpureplay_last_error, gpureplay_version};
pub use recording::{
    RecordingHandle, gpureplay_close, gpureplay_layer, gpureplay_layer_count, gpureplay_layer_name,
    gpureplay_open, gpureplay_open_bytes, gpureplay_open_signed, gpureplay_tensor,
    gpureplay_tensor_count,
};
pub use session::{
    SessionHandle, gpureplay_bind, gpureplay_bind_file, gpureplay_bind_weights, gpureplay_keep,
    gpureplay_read, gpureplay_reset_states, gpureplay_run, gpureplay_run_layers,
    gpureplay_session_close, gpureplay_session_open, gpureplay_timing, gpureplay_unbind,
    gpureplay_use_recorded_values,
};
pub use types::{ElementType, RunTiming, SessionOptions, Status, TensorDescription, TensorKind};
