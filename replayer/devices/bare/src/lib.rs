// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replay in other firmware: no operating system, no allocator.
//!
//! [`Device`] is the GPU of a [`Machine`], a trait, or of [`Callbacks`]. Rust adds `gpureplay-core`
//! (`examples/embed.rs`, `replayer/devices/firmware`); C uses `include/gpureplay_bare.h` and the static library
//! (`examples/embed.c`).
#![no_std]

pub mod c;
mod callbacks;
mod device;
mod layout;
mod machine;

pub use callbacks::Callbacks;
pub use device::Device;
pub use machine::{Machine, Memory};

#[cfg(all(target_os = "none", feature = "panic-handler"))]
unsafe extern "C" {
    /// Defined nowhere: a panic does not link.
    safe fn size_must_not_panic() -> !;
}

#[cfg(all(target_os = "none", feature = "panic-handler"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    size_must_not_panic()
}
