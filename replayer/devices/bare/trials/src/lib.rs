// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the library for firmware, on a host: see `tests`.
#![forbid(unsafe_code)]
