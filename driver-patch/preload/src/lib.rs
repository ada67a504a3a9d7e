// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records an app on the stock panfrost, panthor or kbase driver, from inside of the app: `libgpureplay_recorder.so`.
//!
//! `LD_PRELOAD` puts it between the app's runtime and the C library. It passes every call on and follows those on the driver's files:
//! objects when they are made, shared and freed, and jobs. Before a job it writes the pages of what the job lists that the app
//! changed into the raw trace, all that changed when notes say that the app wrote (`announced`), and after the job those that the job
//! changed; jobs run one at a time. The registers in the trace are those that panfrost tells user
//! space, and those that it is known to write (`panfrost`).
//!
//! `GPUREPLAY_TRACE` names the trace; without it every call is passed on. One process writes it: the first that gives the GPU a job.
//! Another process that does so adds an error, so that the trace does not count as complete. What goes wrong with the trace is said
//! once on standard error and is not the app's affair.
//!
//! Each exported function calls the next definition of its name, so that another preloaded library may stand below this one.

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
mod panfrost;
mod panthor;
mod recorder;
mod regions;
mod submit;
mod threads;
