// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings in somebody else's firmware: no operating system, no allocator.
//!
//! [`Device`] is a GPU behind a few callbacks, with memory from an arena that the firmware gives. Rust uses it with
//! `gpureplay-core` (`examples/embed.rs`); C uses `include/gpureplay_bare.h` and the static library (`examples/embed.c`).
#![no_std]

pub mod c;
mod device;
mod layout;

pub use device::{Callbacks, Device};

#[cfg(target_os = "none")]
unsafe extern "C" {
    /// Defined nowhere: a firmware with a panic in it does not link.
    safe fn size_must_not_panic() -> !;
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    size_must_not_panic()
}
