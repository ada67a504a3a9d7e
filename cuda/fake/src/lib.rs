// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for `libcuda.so.1`: it proves plumbing, never kernels.
//!
//! | Variable | Meaning |
//! | --- | --- |
//! | `GPUREPLAY_FAKE_FAIL=N` | the Nth call fails with `CUDA_ERROR_UNKNOWN`, with a message |
//! | `GPUREPLAY_FAKE_TRACE=1` | prints launches and pinned memory on standard error |
//! | `GPUREPLAY_FAKE_COLLIDE=N` | wanted addresses are taken in a replay's first N processes |
//! | `GPUREPLAY_FAKE_FULL=1` | only 1 MiB of memory is said to be free, not 8 GiB |

mod exports;
mod fault;
mod graphs;
mod kernels;
mod memory;
mod modules;
mod profiler;
