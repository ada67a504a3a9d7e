// SPDX-License-Identifier: MIT OR Apache-2.0
//! Driver and firmware: [`registers`], [`interface`], [`file()`].
//!
//! Source: Linux's `panthor` headers (6.12 to 7.3).

mod file;
pub mod interface;
pub mod registers;

pub use file::{FILE_SIZE, file};
