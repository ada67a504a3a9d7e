// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux panfrost's user space interface.
//!
//! Sources: `panfrost_drm.h`, `drm.h`, `sync_file.h` of Linux 6.12; panfrost 1.6 is in 7.3.

pub mod parameter;
pub mod request;
