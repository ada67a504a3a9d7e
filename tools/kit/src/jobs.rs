// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs without shaders, for recordings about memory only.

use gpureplay_format::{Access, Builder, RegionKind};

/// [`builder`]'s GPU.
pub const GPU: u32 = 0x7212_0000;
/// [`builder`]'s descriptor pages.
pub const JOBS: u64 = 0x200_0000;
/// [`builder`]'s data pages.
pub const DATA: u64 = 0x300_0000;

/// For a G52's recording.
pub fn builder(descriptors: u32, data: u32) -> Builder {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(
        JOBS,
        descriptors,
        Access::READ_WRITE,
        RegionKind::Descriptors,
    );
    builder.region(DATA, data, Access::READ_WRITE, RegionKind::Data);
    builder
}

/// With 64-bit addresses.
pub fn null_job(next: u64) -> [u8; 32] {
    let mut job = [0; 32];
    job[16] = 1 << 1 | 1;
    job[24..].copy_from_slice(&next.to_le_bytes());
    job
}

/// Runs a null job; its page is at `va`.
pub fn null_chain(builder: &mut Builder, va: u64) {
    builder.upload(va, &null_job(0));
    builder.submit(1, va, 1000);
}

/// Job type.
pub const WRITE_VALUE: u32 = 2;

/// Writes a word to `target`; fails if `kind` is not [`WRITE_VALUE`].
pub fn write_value(kind: u32, next: u64, target: u64, value: u32) -> Vec<u8> {
    let mut words = [0; 14];
    words[4] = kind << 1 | 1 | 1 << 16;
    (words[6], words[7]) = (next as u32, (next >> 32) as u32);
    (words[8], words[9]) = (target as u32, (target >> 32) as u32);
    (words[10], words[12]) = (6, value);
    words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect()
}
