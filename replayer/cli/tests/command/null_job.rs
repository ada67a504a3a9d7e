// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least that a GPU can do, for recordings that say something about memory only.

use gpureplay_format::{Access, Builder, RegionKind};

/// A null job with 64-bit addresses, and its successor.
pub(crate) fn null_job(next: u64) -> [u8; 32] {
    let mut job = [0; 32];
    job[16] = 1 << 1 | 1;
    job[24..].copy_from_slice(&next.to_le_bytes());
    job
}

/// Runs one null job, whose page is at `va`.
pub(crate) fn null_chain(builder: &mut Builder, va: u64) {
    builder.upload(va, &null_job(0));
    builder.submit(1, va, 1000);
}

/// A page for [`null_chain`].
pub(crate) fn null_page(builder: &mut Builder, va: u64) {
    builder.region(va, 1, Access::READ_WRITE, RegionKind::Descriptors);
}
