// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a device cannot be used, with the cure.

use std::io;
use std::path::PathBuf;

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The nano driver is not there.
    #[error(
        "{path}: no such device; load nano-driver/gpureplay_nano.ko and bind the GPU to it (nano-driver/README.md)"
    )]
    NoDriver {
        /// The device node.
        path: PathBuf,
    },
    /// No GPU is driven by this driver.
    #[error(
        "no render node in /dev/dri belongs to the driver {0}: load it (sudo modprobe {0}), or give the GPU back to it; --device model needs no GPU"
    )]
    NoRenderNode(&'static str),
    /// Arm's own driver is not there.
    #[error(
        "{0}: no such device; the kernel has not loaded kbase, Arm's own driver, or it does not drive the GPU; --device panfrost uses Linux's"
    )]
    NoKbase(PathBuf),
    /// A render node belongs to another driver.
    #[error("{path}: its driver is {found}, expected {wanted}")]
    OtherDriver {
        /// The render node.
        path: PathBuf,
        /// Name and versions that will do.
        wanted: String,
        /// Name and version of the driver.
        found: String,
    },
    /// The kernel's pages are larger than those of recordings.
    #[error(
        "the driver of a kernel with pages of {found} bytes cannot place a recording's, which have 4096; boot a kernel with pages of 4096 bytes, or use --device nano"
    )]
    PageSize {
        /// Bytes of a page.
        found: i64,
    },
    /// Somebody else has the device open.
    #[error("{path}: another process has the GPU; end it, or share: --device nano:shared in both")]
    Busy {
        /// The device node.
        path: PathBuf,
    },
    /// The GPU does not come back from a reset.
    #[error("the GPU does not reset; power the board off and on")]
    Stuck,
    /// The caller may not open it.
    #[error("{path}: permission denied; {cure}")]
    Permission {
        /// The device node.
        path: PathBuf,
        /// What lets the caller in.
        cure: String,
    },
    /// The driver lacks what this program needs.
    #[error("the nano driver that is loaded is too old for this program; build both from one tree")]
    OldDriver,
    /// The device tree has no Mali GPU.
    #[error(
        "the device tree has no enabled node that is compatible with arm,mali-bifrost or arm,mali-valhall-jm"
    )]
    NoGpu,
    /// The device tree and what is known of the board do not agree.
    #[error(
        "the device tree says that the GPU's registers are at {found:#x}, the board {board} has them at {expected:#x}; leave the board out"
    )]
    OtherBoard {
        /// The board that was named.
        board: String,
        /// Where its registers are.
        expected: u64,
        /// Where the device tree says they are.
        found: u64,
    },
    /// A driver holds the GPU.
    #[error(
        "the driver {driver} holds the GPU {device}; unbind it first: echo {device} > /sys/bus/platform/drivers/{driver}/unbind"
    )]
    Bound {
        /// The driver's name.
        driver: String,
        /// The device's name.
        device: String,
    },
    /// The kernel keeps /dev/mem away from devices or memory.
    #[error("the kernel forbids {what} ({reason}); {cure}")]
    Forbidden {
        /// What was tried.
        what: &'static str,
        /// How the kernel said so.
        reason: String,
        /// What helps.
        cure: &'static str,
    },
    /// The GPU does not snoop CPU caches, and this device cannot maintain them.
    #[error(
        "the GPU is not cache-coherent on this machine, and user space cannot maintain caches; use --device nano"
    )]
    NotCoherent,
    /// The registers do not answer like a Mali GPU.
    #[error(
        "GPU_ID reads {found:#010x}: the GPU has no power or no clock; use --device nano, which switches both on"
    )]
    NoAnswer {
        /// What was read.
        found: u32,
    },
    /// Anything else.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// The error.
        error: io::Error,
    },
}
