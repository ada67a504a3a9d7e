// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why devices cannot be used.

use std::io;
use std::path::PathBuf;

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No nano driver.
    #[error(
        "{path}: no such device; load nano-driver/gpureplay_nano.ko and bind the GPU to it (nano-driver/README.md)"
    )]
    NoDriver {
        /// Device.
        path: PathBuf,
    },
    /// The driver has no GPU.
    #[error(
        "no render node in /dev/dri belongs to the driver {0}: load it (sudo modprobe {0}), or give the GPU back to it; --device model needs no GPU"
    )]
    NoRenderNode(&'static str),
    /// No kbase.
    #[error(
        "{0}: no such device; the kernel has not loaded kbase, Arm's own driver, or it does not drive the GPU; --device panfrost uses Linux's"
    )]
    NoKbase(PathBuf),
    /// Another driver's render node.
    #[error("{path}: its driver is {found}, expected {wanted}")]
    OtherDriver {
        /// Render node.
        path: PathBuf,
        /// Name and versions.
        wanted: String,
        /// Name and version.
        found: String,
    },
    /// The kernel's pages are too large.
    #[error(
        "the driver of a kernel with pages of {found} bytes cannot place a recording's, which have 4096; boot a kernel with pages of 4096 bytes, or use --device nano"
    )]
    PageSize {
        /// Bytes.
        found: i64,
    },
    /// The device is open elsewhere.
    #[error("{path}: another process has the GPU; end it, or share: --device nano:shared in both")]
    Busy {
        /// Device.
        path: PathBuf,
    },
    /// The GPU hangs in reset.
    #[error("the GPU does not reset; power the board off and on")]
    Stuck,
    /// The caller may not open it.
    #[error("{path}: permission denied; {cure}")]
    Permission {
        /// Device.
        path: PathBuf,
        /// What helps.
        cure: String,
    },
    /// The driver is too old.
    #[error("the nano driver that is loaded is too old for this program; build both from one tree")]
    OldDriver,
    /// A device tree without Mali GPU.
    #[error(
        "the device tree has no enabled node that is compatible with arm,mali-bifrost or arm,mali-valhall-jm"
    )]
    NoGpu,
    /// Device tree and board differ.
    #[error(
        "the device tree says that the GPU's registers are at {found:#x}, the board {board} has them at {expected:#x}; leave the board out"
    )]
    OtherBoard {
        /// Board.
        board: String,
        /// Register address of the board.
        expected: u64,
        /// Register address in the device tree.
        found: u64,
    },
    /// A driver holds the GPU.
    #[error(
        "the driver {driver} holds the GPU {device}; unbind it first: echo {device} > /sys/bus/platform/drivers/{driver}/unbind"
    )]
    Bound {
        /// Driver.
        driver: String,
        /// Device.
        device: String,
    },
    /// The kernel restricts /dev/mem.
    #[error("the kernel forbids {what} ({reason}); {cure}")]
    Forbidden {
        /// What was tried.
        what: &'static str,
        /// Answer.
        reason: String,
        /// What helps.
        cure: &'static str,
    },
    /// The GPU does not snoop caches.
    #[error(
        "the GPU is not cache-coherent on this machine, and user space cannot maintain caches; use --device nano"
    )]
    NotCoherent,
    /// The registers are no Mali GPU's.
    #[error(
        "GPU_ID reads {found:#010x}: the GPU has no power or no clock; use --device nano, which switches both on"
    )]
    NoAnswer {
        /// Value read.
        found: u32,
    },
    /// Anything else.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// Cause.
        error: io::Error,
    },
}
