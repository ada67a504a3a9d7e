// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image's length by its headers: the driver gets only addresses.

use crate::image::bytes::{size, u16_at, u32_at, u64_at};
use crate::image::{ImageError, MAX_IMAGE};

/// Bytes for [`extent`], but of texts.
pub const PREFIX: usize = 64;

const FATBIN: u32 = 0xba55_ed50;
const WRAPPER: u32 = 0x4662_43b1;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

const SHT_NOBITS: u32 = 8;
const SECTION_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;

/// Kind of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Cubins and PTX texts.
    Fatbin,
    /// ELF, for one GPU.
    Cubin,
    /// For the driver's compiler.
    Ptx,
}

impl Format {
    /// PTX must contain `.version`.
    #[must_use]
    pub fn of(image: &[u8]) -> Option<Self> {
        match u32_at(image, 0) {
            Ok(FATBIN) => Some(Self::Fatbin),
            Ok(ELF) => Some(Self::Cubin),
            _ => {
                let end = image
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(image.len());
                let text = &image[..end];
                text.windows(8)
                    .any(|window| window == b".version")
                    .then_some(Self::Ptx)
            }
        }
    }
}

/// Known length of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// `nvcc`'s wrapper: the image's address.
    Elsewhere(u64),
    /// This many bytes.
    Bytes(usize),
    /// ELF section headers, for [`Extent::of_sections`].
    Sections {
        /// Offset.
        offset: usize,
        /// Bytes.
        size: usize,
        /// Other headers' end.
        least: usize,
    },
    /// Ends with a zero byte.
    Text,
}

/// Length of an image, from the first [`PREFIX`] bytes.
///
/// # Errors
/// Senseless headers.
pub fn extent(prefix: &[u8]) -> Result<Extent, ImageError> {
    match u32_at(prefix, 0)? {
        WRAPPER => Ok(Extent::Elsewhere(u64_at(prefix, 8)?)),
        FATBIN => {
            let header = u64::from(u16_at(prefix, 6)?);
            let total = u64_at(prefix, 8)?
                .checked_add(header)
                .ok_or(ImageError::Header { offset: 0 })?;
            Ok(Extent::Bytes(size(total)?))
        }
        ELF => {
            let (programs, sections) = (u64_at(prefix, 32)?, u64_at(prefix, 40)?);
            let programs_size = u64::from(u16_at(prefix, 56)?) * PROGRAM_HEADER;
            let sections_size = u64::from(u16_at(prefix, 60)?) * SECTION_HEADER;
            let end = |start: u64, bytes: u64| {
                size(
                    start
                        .checked_add(bytes)
                        .ok_or(ImageError::Header { offset: 0 })?,
                )
            };
            Ok(Extent::Sections {
                offset: size(sections)?,
                size: size(sections_size)?,
                least: end(programs, programs_size)?.max(end(sections, sections_size)?),
            })
        }
        _ => Ok(Extent::Text),
    }
}

impl Extent {
    /// Length of an ELF file, from section headers.
    ///
    /// # Errors
    /// Senseless headers.
    pub fn of_sections(least: usize, headers: &[u8]) -> Result<usize, ImageError> {
        let mut end = least;
        for (index, header) in headers.chunks_exact(SECTION_HEADER as usize).enumerate() {
            if u32_at(header, 4)? != SHT_NOBITS {
                let damaged = ImageError::Header {
                    offset: index * SECTION_HEADER as usize,
                };
                let last = u64_at(header, 24)?
                    .checked_add(u64_at(header, 32)?)
                    .ok_or(damaged)?;
                end = end.max(size(last)?);
            }
        }
        Ok(end.min(MAX_IMAGE))
    }
}

pub(crate) const fn fatbin_magic() -> u32 {
    FATBIN
}
