// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fatbins: cubins and PTX texts, perhaps compressed.
//!
//! Undocumented; seen in nvcc 11 to 13.

use std::borrow::Cow;
use std::io::Read;

use crate::image::bytes::{range, size, u16_at, u32_at, u64_at};
use crate::image::extent::fatbin_magic;
use crate::image::{ImageError, MAX_IMAGE};

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTANDARD: u64 = 0x8000;
const MIN_MEMBER_HEADER: usize = 64;
const CONTAINER_HEADER: usize = 16;

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// For the driver's compiler.
    Ptx,
    /// ELF, for one GPU.
    Cubin,
    /// Anything else.
    Other,
}

/// How a member is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not.
    None,
    /// An LZ4 block.
    Lz4,
    /// A Zstandard frame.
    Zstandard,
}

/// A member of a fatbin.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Kind.
    pub kind: MemberKind,
    /// 90 is `sm_90`.
    pub capability: u32,
    /// Compression.
    pub compression: Compression,
    /// In the fatbin.
    pub offset: usize,
    payload: &'a [u8],
    size: usize,
}

/// Members of one or more containers.
///
/// # Errors
/// A senseless header, or an early end.
pub fn members(fatbin: &[u8]) -> Result<Vec<Member<'_>>, ImageError> {
    let mut members = Vec::new();
    let mut start = 0;
    while u32_at(fatbin, start) == Ok(fatbin_magic()) {
        let header = usize::from(u16_at(fatbin, start + 6)?);
        if header < CONTAINER_HEADER {
            return Err(ImageError::Header { offset: start });
        }
        let body = start + header;
        let length = size(u64_at(fatbin, start + 8)?)?;
        range(fatbin, body, length)?;
        let end = body + length;
        let mut offset = body;
        while end - offset >= MIN_MEMBER_HEADER {
            let (member, next) = member(&fatbin[..end], offset)?;
            members.push(member);
            offset = next;
        }
        start = end;
    }
    Ok(members)
}

fn member(fatbin: &[u8], offset: usize) -> Result<(Member<'_>, usize), ImageError> {
    let header = size(u64::from(u32_at(fatbin, offset + 4)?))?;
    if header < MIN_MEMBER_HEADER {
        return Err(ImageError::Header { offset });
    }
    let padded = size(u64_at(fatbin, offset + 8)?)?;
    let start = offset + header;
    let bytes = range(fatbin, start, padded)?;
    let flags = u64_at(fatbin, offset + 40)?;
    let compression = match (flags & FLAG_LZ4 != 0, flags & FLAG_ZSTANDARD != 0) {
        (true, _) => Compression::Lz4,
        (false, true) => Compression::Zstandard,
        (false, false) => Compression::None,
    };
    let (payload, size) = if compression == Compression::None {
        (bytes, padded)
    } else {
        let compressed = size(u64::from(u32_at(fatbin, offset + 16)?))?;
        (
            range(bytes, 0, compressed)?,
            size(u64_at(fatbin, offset + 56)?)?,
        )
    };
    let kind = match u16_at(fatbin, offset)? {
        1 => MemberKind::Ptx,
        2 => MemberKind::Cubin,
        _ => MemberKind::Other,
    };
    let capability = u32_at(fatbin, offset + 28)?;
    let member = Member {
        kind,
        capability,
        compression,
        offset: start,
        payload,
        size,
    };
    Ok((member, start + padded))
}

impl<'a> Member<'a> {
    /// Stated bytes after decompression.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Decompressed.
    ///
    /// # Errors
    /// Not the stated size.
    pub fn contents(&self) -> Result<Cow<'a, [u8]>, ImageError> {
        let damaged = || ImageError::Compressed {
            offset: self.offset,
        };
        match self.compression {
            Compression::None => Ok(Cow::Borrowed(self.payload)),
            Compression::Lz4 => {
                // A byte of LZ4 gives at most 255, here rounded up: no memory for more.
                if self.size / 256 > self.payload.len() {
                    return Err(damaged());
                }
                let mut out = vec![0; self.size];
                let written = lz4_flex::block::decompress_into(self.payload, &mut out);
                if written.is_ok_and(|written| written == self.size) {
                    Ok(Cow::Owned(out))
                } else {
                    Err(damaged())
                }
            }
            Compression::Zstandard => {
                let decoder =
                    ruzstd::decoding::StreamingDecoder::new(self.payload).map_err(|_| damaged())?;
                let mut out = Vec::new();
                let limit = (self.size as u64).min(MAX_IMAGE as u64);
                decoder
                    .take(limit + 1)
                    .read_to_end(&mut out)
                    .map_err(|_| damaged())?;
                if out.len() == self.size {
                    Ok(Cow::Owned(out))
                } else {
                    Err(damaged())
                }
            }
        }
    }
}
