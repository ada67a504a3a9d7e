// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording and its files in one file.

use gpureplay_format::checksum::{Checksum, checksum};

use crate::RECORDING;
use crate::bytes::{array, slice, u32_at, u64_at};
use crate::error::PackError;
use crate::names::{MAX_FILES, safe};

pub(crate) const MAGIC: [u8; 8] = *b"GPUREPAK";
pub(crate) const MAJOR: u16 = 1;
pub(crate) const HEADER: usize = 64;
pub(crate) const ENTRY: usize = 32;

/// A pack whose checksums are right.
#[derive(Clone, Copy, Debug)]
pub struct Pack<'a> {
    bytes: &'a [u8],
    table: &'a [u8],
    names: &'a [u8],
}

/// A file in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    /// Relative to the recording's directory.
    pub name: &'a str,
    /// Its contents.
    pub bytes: &'a [u8],
}

pub(crate) fn table_checksum(header: &[u8; HEADER], rest: &[u8]) -> u64 {
    let mut unsummed = *header;
    if let Some(field) = unsummed.get_mut(24..32) {
        field.fill(0);
    }
    Checksum::new().update(&unsummed).update(rest).value()
}

impl<'a> Pack<'a> {
    /// Whether bytes start like a pack.
    pub fn is_pack(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// Checks all bytes in linear time.
    ///
    /// # Errors
    /// The first damaged entry.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PackError> {
        if !Self::is_pack(bytes) {
            return Err(PackError::NotAPack);
        }
        let version = u32_at(bytes, 8);
        if version as u16 != MAJOR {
            return Err(PackError::Version(version as u16));
        }
        let header = array::<HEADER>(bytes, 0).ok_or(PackError::Length)?;
        let files = u32_at(bytes, 12);
        if u64_at(bytes, 16) != bytes.len() as u64 {
            return Err(PackError::Length);
        }
        if files > MAX_FILES {
            return Err(PackError::Files(files));
        }
        let entries = files as usize * ENTRY;
        let named = u32_at(bytes, 32) as usize;
        let rest = bytes.get(HEADER..).and_then(|rest| {
            let padded = named.checked_next_multiple_of(8)?;
            rest.get(..entries.checked_add(padded)?)
        });
        let rest = rest.ok_or(PackError::Length)?;
        if table_checksum(&header, rest) != u64_at(bytes, 24) {
            return Err(PackError::TableChecksum);
        }
        let (table, padded) = rest.split_at_checked(entries).ok_or(PackError::Length)?;
        let (names, padding) = padded.split_at_checked(named).ok_or(PackError::Length)?;
        let zero = header.get(36..).unwrap_or(&[]).iter().chain(padding);
        if version >> 16 != 0 || zero.into_iter().any(|&byte| byte != 0) {
            return Err(PackError::NotZero(0));
        }
        let pack = Self {
            bytes,
            table,
            names,
        };
        pack.check_files(HEADER + rest.len())?;
        Ok(pack)
    }

    fn check_files(&self, mut end: usize) -> Result<(), PackError> {
        let mut names = self.names;
        let mut before = "";
        for (index, entry) in (0..).zip(self.table.chunks(ENTRY)) {
            let (offset, length) = (u64_at(entry, 0), u64_at(entry, 8));
            let name = names.split_at_checked(u32_at(entry, 24) as usize);
            let (name, after) = name.ok_or(PackError::Name(index))?;
            names = after;
            let name = safe(name).ok_or(PackError::Name(index))?;
            if (index == 0) != (name == RECORDING) || (index > 1 && name <= before) {
                return Err(PackError::Name(index));
            }
            before = name;
            if u32_at(entry, 28) != 0 {
                return Err(PackError::NotZero(index));
            }
            let padded = length.checked_next_multiple_of(8);
            let contents = padded.and_then(|padded| slice(self.bytes, offset, padded));
            let contents = contents.filter(|_| offset == end as u64);
            let contents = contents.ok_or(PackError::Place(index))?;
            if checksum(contents) != u64_at(entry, 16) {
                return Err(PackError::Checksum(index));
            }
            let padding = contents.get(length as usize..).unwrap_or(&[]);
            if padding.iter().any(|&byte| byte != 0) {
                return Err(PackError::NotZero(index));
            }
            end = end.saturating_add(contents.len());
        }
        if self.table.is_empty() || !names.is_empty() {
            return Err(PackError::Name(0));
        }
        if end != self.bytes.len() {
            return Err(PackError::Length);
        }
        Ok(())
    }

    /// Recording first, then by name.
    pub fn files(&self) -> impl Iterator<Item = Packed<'a>> + use<'a> {
        let (bytes, mut names) = (self.bytes, self.names);
        self.table.chunks(ENTRY).filter_map(move |entry| {
            let (name, after) = names.split_at_checked(u32_at(entry, 24) as usize)?;
            names = after;
            Some(Packed {
                name: safe(name)?,
                bytes: slice(bytes, u64_at(entry, 0), u64_at(entry, 8))?,
            })
        })
    }

    /// Contents of one file.
    pub fn file(&self, name: &str) -> Option<&'a [u8]> {
        self.files()
            .find(|file| file.name == name)
            .map(|file| file.bytes)
    }

    /// The recording.
    pub fn recording(&self) -> &'a [u8] {
        self.file(RECORDING).unwrap_or(&[])
    }
}
