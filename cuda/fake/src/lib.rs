// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for `libcuda.so.1`, for tests without a GPU.
//!
//! Memory is the host's, at a GPU's kind of addresses; images are parsed; kernels are host functions of their names
//! (`kernels.rs`). It proves plumbing, never kernels.
//!
//! | Variable | Meaning |
//! | --- | --- |
//! | `GPUREPLAY_FAKE_FAIL=N` | the Nth call fails with `CUDA_ERROR_UNKNOWN`, and says so on standard error |
//! | `GPUREPLAY_FAKE_TRACE=1` | prints launches and pinned memory on standard error |
//! | `GPUREPLAY_FAKE_COLLIDE=N` | wanted addresses are taken in the first N processes of a replay |

mod exports;
mod fault;
mod graphs;
mod kernels;
mod memory;
mod modules;
mod profiler;
