// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a driver talks to firmware: [`registers`], shared memory ([`interface`]), and the file ([`file()`]).
//!
//! Source: the headers of Linux's `panthor` (6.12 to 7.3).

mod file;
pub mod interface;
pub mod registers;

pub use file::{FILE_SIZE, file};
