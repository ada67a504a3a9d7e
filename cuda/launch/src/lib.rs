// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by CUDA recorder and replayer: driver ([`abi`]), code ([`image`]), probes ([`probe`]), recordings
//! ([`recording`]).
#![deny(unsafe_code)]

pub mod abi;
pub mod image;
pub mod probe;
pub mod recording;
