// SPDX-License-Identifier: MIT OR Apache-2.0
//! Length of an image by its headers: programs give the driver only an address.

use crate::image::bytes::{size, u16_at, u32_at, u64_at};
use crate::image::{ImageError, MAX_IMAGE};

/// Bytes that [`extent`] needs, but of a text.
pub const PREFIX: usize = 64;

const FATBIN: u32 = 0xba55_ed50;
const WRAPPER: u32 = 0x4662_43b1;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// `NOBITS`: without bytes in the file.
const SECTION_WITHOUT_BYTES: u32 = 8;
const SECTION_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;

/// Kind of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Several cubins and PTX texts.
    Fatbin,
    /// An ELF file for one GPU.
    Cubin,
    /// A text for the driver's compiler.
    Ptx,
}

impl Format {
    /// By the first bytes. PTX must contain `.version`.
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
    /// `nvcc`'s wrapper: the image is at this address.
    Elsewhere(u64),
    /// This many bytes.
    Bytes(usize),
    /// An ELF file: give these section headers to [`Extent::of_sections`].
    Sections {
        /// Offset.
        offset: usize,
        /// Bytes.
        size: usize,
        /// End of the other headers.
        least: usize,
    },
    /// A text that ends with a zero byte.
    Text,
}

/// From an image's first [`PREFIX`] bytes.
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
    /// Length of an ELF file from its section headers.
    ///
    /// # Errors
    /// Senseless headers.
    pub fn of_sections(least: usize, headers: &[u8]) -> Result<usize, ImageError> {
        let mut end = least;
        for (index, header) in headers.chunks_exact(SECTION_HEADER as usize).enumerate() {
            if u32_at(header, 4)? != SECTION_WITHOUT_BYTES {
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
