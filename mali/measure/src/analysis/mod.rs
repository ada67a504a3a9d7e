// SPDX-License-Identifier: MIT OR Apache-2.0
//! What jobs do to memory: [`analyse`] runs analysers, [`annotate`] writes findings beside instructions, [`page`]
//! makes HTML.

pub mod analyse;
pub mod annotate;
mod map;
pub mod page;

pub use gpureplay_analysis::{What, report};
pub use map::map_of;
