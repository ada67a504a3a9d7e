// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of Linux's panfrost driver to user space: what a recorder follows, what a replay uses, what the model presents.
//!
//! [`request`] has requests of `ioctl` and their arguments, [`parameter`] the registers that the driver tells. Sources: `panfrost_drm.h`,
//! `drm.h` and `sync_file.h` of Linux 6.12; panfrost 1.6 is in Linux 7.3.

pub mod parameter;
pub mod request;
