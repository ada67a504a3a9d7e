// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library that `gpureplay cuda record` preloads (`LD_PRELOAD`).
//!
//! Programs that link to `libcuda.so.1`, use `dlsym` or `cuGetProcAddress` get our functions, which pass calls on.
//! Around a wanted launch, reachable memory is copied while other threads wait (`gate.rs`). Standard error names
//! what cannot be recorded; the program runs on.
//!
//! Our `dlsym` is for x86-64; elsewhere only linked programs are seen.

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
mod guard;
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
