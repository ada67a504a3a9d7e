// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU as a kernel driver sees it.

#![allow(clippy::unwrap_used)]

mod drawing;
mod drawing_limits;
mod faults;
mod firmware;
mod levels;
mod limits;
mod machine;
mod picture;
mod products;
mod random;
mod registers;
mod shaders;
mod slots;
mod stalls;
mod stops;
mod streams;
mod valhall;
mod valhall_drawing;
mod walk;
