// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains of Mali GPUs: [`walk`] checks them, [`link`] joins and splits them, [`moved`] moves code, [`patch`]
//! finds uploads, [`reach`] follows buffers, [`streams`] has command streams, [`text`] shows descriptors.
#![forbid(unsafe_code)]

pub mod link;
pub mod moved;
pub mod patch;
pub mod reach;
pub mod streams;
pub mod text;
pub mod walk;
