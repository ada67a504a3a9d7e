// SPDX-License-Identifier: MIT OR Apache-2.0
//! What recorder and replayer of CUDA share: calls of the driver ([`abi`]), images of code ([`image`]), probes in them ([`probe`]), recordings on disk ([`recording`]).
#![deny(unsafe_code)]

pub mod abi;
pub mod image;
pub mod probe;
pub mod recording;
