// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared CUDA code: [`abi`], [`image`], [`probe`], [`recording`].
#![deny(unsafe_code)]

pub mod abi;
pub mod image;
pub mod probe;
pub mod recording;
