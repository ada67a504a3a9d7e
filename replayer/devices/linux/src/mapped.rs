// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory and registers that a device shares with this process.

use std::fs::File;
use std::io;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::barrier;
use crate::pin::Pin;

/// A shared mapping of a device file. Other parties (the GPU, interrupt handlers) change it at any time, so no Rust
/// reference to its bytes ever exists; all access goes through raw pointers with checked ranges.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: MmapRaw,
    /// Keeps its pages in their places; outlives the mapping.
    _pin: Option<Pin>,
}

impl Mapped {
    /// Maps `length` bytes of `file` from `offset`, shared, for reading and writing.
    ///
    /// # Errors
    /// What `mmap` says.
    pub(crate) fn new(file: &File, offset: u64, length: usize) -> io::Result<Self> {
        let map = MmapOptions::new()
            .offset(offset)
            .len(length)
            .map_raw(file)?;
        Ok(Self { map, _pin: None })
    }

    /// Anonymous zeroed memory.
    ///
    /// # Errors
    /// What `mmap` says.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(length).map_anon()?.into();
        Ok(Self { map, _pin: None })
    }

    /// Anonymous zeroed memory whose pages are this process's own and keep their physical addresses.
    ///
    /// # Errors
    /// What `mmap` or `mlock` says, or why pages cannot be pinned.
    pub(crate) fn pinned(length: usize) -> io::Result<Self> {
        let memory = Self::locked(length)?;
        // A child would get copies that it has no use for.
        memory.map.advise(Advice::DontFork)?;
        let pin = Pin::new(memory.address(), length)?;
        Ok(Self {
            map: memory.map,
            _pin: Some(pin),
        })
    }

    /// Anonymous zeroed memory that is never swapped out. The kernel may move its pages.
    ///
    /// # Errors
    /// What `mmap` or `mlock` says.
    pub(crate) fn locked(length: usize) -> io::Result<Self> {
        let memory = Self::anonymous(length)?;
        memory.map.lock()?;
        // A page that was only read may be the shared zero page.
        memory.clear();
        Ok(memory)
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Address in this process.
    pub(crate) fn address(&self) -> usize {
        self.map.as_ptr() as usize
    }

    /// Whether `length` bytes from `offset` lie inside.
    fn contains(&self, offset: usize, length: usize) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.len())
    }

    /// Reads a 32-bit device register; all ones outside the mapping. Memory that is read afterwards is no older than the
    /// register's value.
    pub(crate) fn read32(&self, offset: usize) -> u32 {
        if !offset.is_multiple_of(4) || !self.contains(offset, 4) {
            return u32::MAX;
        }
        // SAFETY: aligned (mappings start at a page) and inside the mapping; volatile, so a device sees one access.
        let value = unsafe { self.map.as_ptr().add(offset).cast::<u32>().read_volatile() };
        barrier::after_register_read();
        value
    }

    /// Writes a 32-bit device register; nothing outside the mapping. The device finds memory that was written before.
    pub(crate) fn write32(&self, offset: usize, value: u32) {
        if !offset.is_multiple_of(4) || !self.contains(offset, 4) {
            return;
        }
        barrier::before_register_write();
        // SAFETY: as in `read32`; no reference to these bytes exists.
        unsafe {
            self.map
                .as_mut_ptr()
                .add(offset)
                .cast::<u32>()
                .write_volatile(value);
        }
    }

    /// Copies into the mapping; `false`, and nothing copied, when the range is outside.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        if !self.contains(offset, bytes.len()) {
            return false;
        }
        // SAFETY: the range is inside, `bytes` is Rust memory and cannot overlap a mapping nobody has a reference to.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.map.as_mut_ptr().add(offset),
                bytes.len(),
            );
        }
        true
    }

    /// Copies out of the mapping; `false`, and nothing copied, when the range is outside.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        if !self.contains(offset, bytes.len()) {
            return false;
        }
        // SAFETY: as in `write`, in the other direction.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.map.as_ptr().add(offset),
                bytes.as_mut_ptr(),
                bytes.len(),
            );
        }
        true
    }

    /// Sets every byte to zero.
    pub(crate) fn clear(&self) {
        // SAFETY: the whole mapping, to which no reference exists.
        unsafe { std::ptr::write_bytes(self.map.as_mut_ptr(), 0, self.len()) };
    }
}
