// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library that `gpureplay cuda record` puts into an unmodified program (`LD_PRELOAD`).
//!
//! It exports the driver's functions and `dlsym`. A program that links to `libcuda.so.1`, one that looks functions up with
//! `dlsym`, and one that asks `cuGetProcAddress`, all get ours, which pass calls on. Around a launch that is wanted, all
//! memory that the kernel can reach is copied before and after; launches, copies and memsets of other threads wait
//! meanwhile (`gate.rs`). What cannot be recorded is named on standard error, and the program runs on undisturbed.
//!
//! The substitution of `dlsym` is written for x86-64. On other processors only programs that link to the driver are seen.

mod arena;
mod asked;
mod c_library;
mod copy;
mod cupti;
mod dlsym;
mod durations;
mod functions;
mod gate;
mod graphs;
mod hooks;
mod images;
mod launch;
mod memory;
mod module;
mod nodes;
mod nvtx;
mod order;
mod parameters;
mod real;
mod record;
mod replace;
mod report;
mod run;
mod say;
mod settings;
mod state;
mod tally;
mod tuned;
mod variables;
