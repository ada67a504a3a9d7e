// SPDX-License-Identifier: MIT OR Apache-2.0
//! An OpenCL layer that logs what an app does: `libgpureplay_opencl.so`.
//!
//! Each launch, memory object and transfer becomes a [`gpureplay_trace::note::Note`] among the recorder's register
//! accesses. Queues run in the order they are filled, and the compiler matches chains to launches by order and size. A
//! note that cannot be written never fails a call.
//!
//! An ICD loader reads `OPENCL_LAYERS` and calls [`entry::clInitLayer`]. Without a loader, the library replaces
//! `libOpenCL.so` ([`forwarder`]). Notes go to `libgpureplay_recorder.so` if the process has it, and to the file of
//! `GPUREPLAY_NOTES`, the recorder's device; without both the layer does nothing.

mod abi;
mod arguments;
mod calls;
pub mod entry;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub mod forwarder;
mod pending;
mod reach;
mod set;
mod sink;
mod state;
mod table;
mod types;
