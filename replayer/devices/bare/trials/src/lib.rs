// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host tests of the firmware library: see `tests`.
#![forbid(unsafe_code)]
