// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for `libcuda.so.1`, for tests on machines without a GPU.
//!
//! Memory is memory of the host, at the kind of addresses that a GPU has; images are parsed; a kernel is a host function
//! of the same name (`kernels.rs`). So it carries programs through recording, replay, refusal and failure. It proves
//! plumbing, never kernels.
//!
//! | Variable | Meaning |
//! | --- | --- |
//! | `GPUREPLAY_FAKE_FAIL=N` | the Nth call fails with `CUDA_ERROR_UNKNOWN`, and says so on standard error |
//! | `GPUREPLAY_FAKE_TRACE=1` | launches and pinned memory are said on standard error |
//! | `GPUREPLAY_FAKE_COLLIDE=N` | a reservation at a wanted address goes elsewhere in the first N processes of a replay |

mod exports;
mod fault;
mod graphs;
mod kernels;
mod memory;
mod modules;
mod profiler;
