// SPDX-License-Identifier: MIT OR Apache-2.0
//! Little-endian numbers from cut-off bytes.

use crate::image::ImageError;

pub(crate) fn range(bytes: &[u8], offset: usize, count: usize) -> Result<&[u8], ImageError> {
    let end = offset
        .checked_add(count)
        .ok_or(ImageError::CutOff { offset })?;
    bytes.get(offset..end).ok_or(ImageError::CutOff { offset })
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], ImageError> {
    let mut value = [0; N];
    value.copy_from_slice(range(bytes, offset, N)?);
    Ok(value)
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, ImageError> {
    array(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Result<u32, ImageError> {
    array(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Result<u64, ImageError> {
    array(bytes, offset).map(u64::from_le_bytes)
}

pub(crate) fn size(value: u64) -> Result<usize, ImageError> {
    usize::try_from(value)
        .ok()
        .filter(|size| *size <= crate::image::MAX_IMAGE)
        .ok_or(ImageError::TooLarge { size: value })
}
