// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library that `gpureplay cuda record` puts into an unmodified program (`LD_PRELOAD`).
//!
//! It exports the driver's functions and `dlsym`: programs that link to `libcuda.so.1`, use `dlsym` or ask
//! `cuGetProcAddress` get ours, which pass calls on. Around a wanted launch, all memory that the kernel can reach
//! is copied before and after, while other threads wait (`gate.rs`). What cannot be recorded is named on standard
//! error; the program runs on.
//!
//! Our `dlsym` is for x86-64. Elsewhere only programs that link to the driver are seen.

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
