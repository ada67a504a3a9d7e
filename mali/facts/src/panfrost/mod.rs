// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux panfrost's interface to user space: [`request`] for `ioctl`, [`parameter`] for registers.
//!
//! Sources: `panfrost_drm.h`, `drm.h` and `sync_file.h` of Linux 6.12; panfrost 1.6 is in Linux 7.3.

pub mod parameter;
pub mod request;
