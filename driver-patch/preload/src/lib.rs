// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records an app on the stock panfrost, panthor or kbase driver, from inside of the app:
//! `libgpureplay_recorder.so`.
//!
//! `LD_PRELOAD` puts it between the app's runtime and the C library. It passes every call on and follows objects and
//! jobs. Before a job it writes pages that the app changed into the raw trace: of what the job lists, or all when notes
//! announce writes (`announced`). After the job it writes those that the job changed. Registers in the trace are those
//! that panfrost tells user space, and those that it is known to write (`mali_uapi::accesses`).
//!
//! `GPUREPLAY_TRACE` names the trace; without it every call is passed on. The first process that gives the GPU a job
//! writes it. Another one adds an error, so that the trace is not complete.

mod announced;
mod arguments;
mod audit;
mod driver;
mod files;
mod guard;
pub mod interpose;
mod kbase;
mod kernel;
mod log;
mod memory;
mod next;
mod object;
mod panthor;
mod recorder;
mod regions;
mod submit;
mod threads;
