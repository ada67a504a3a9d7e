// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host tests of the library.
#![forbid(unsafe_code)]
