// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtual machine's memory, from file descriptors.

use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError, RwLock};

use memmap2::{MmapOptions, MmapRaw};

use crate::{Bus, PAGE_SIZE, Page};

/// Why a region was refused.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// Not in whole pages, empty, or overflowing.
    #[error(
        "region {address:#x}+{length:#x} (file offset {offset:#x}) is not made of whole 4 KiB pages"
    )]
    Shape {
        /// Bus address.
        address: u64,
        /// Bytes.
        length: u64,
        /// Offset in the file.
        offset: u64,
    },
    /// Another region has a part.
    #[error("region {address:#x}+{length:#x} overlaps the region at {other:#x}")]
    Overlap {
        /// Bus address of the refused region.
        address: u64,
        /// Its bytes.
        length: u64,
        /// Bus address of the region there.
        other: u64,
    },
    /// No such region.
    #[error("no region {address:#x}+{length:#x}")]
    Unknown {
        /// Bus address.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// The system refused the mapping.
    #[error("cannot map the region at {address:#x}: {source}")]
    Host {
        /// Bus address.
        address: u64,
        /// The system's error.
        source: std::io::Error,
    },
}

#[derive(Debug)]
struct Region {
    address: u64,
    length: u64,
    memory: MmapRaw,
}

/// Regions of shared memory at bus addresses; a page in use keeps its region mapped.
#[derive(Debug, Default)]
pub struct Mapped {
    regions: RwLock<Vec<Arc<Region>>>,
}

impl Mapped {
    /// A bus without memory.
    pub fn new() -> Mapped {
        Mapped::default()
    }

    /// Maps `length` bytes of `file` from `offset` on. Without `writable` stores reach a private copy, as for a
    /// ROM.
    ///
    /// # Errors
    ///
    /// See [`MapError`]; nothing has changed.
    pub fn add(
        &self,
        address: u64,
        length: u64,
        file: &impl AsRawFd,
        offset: u64,
        writable: bool,
    ) -> Result<(), MapError> {
        let page = PAGE_SIZE as u64;
        let end = address.checked_add(length);
        let whole = length != 0
            && [address, length, offset]
                .iter()
                .all(|n| n.is_multiple_of(page));
        let (Some(end), true, Ok(size)) = (end, whole, usize::try_from(length)) else {
            return Err(MapError::Shape {
                address,
                length,
                offset,
            });
        };
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = regions
            .iter()
            .find(|r| address < r.address + r.length && r.address < end)
        {
            return Err(MapError::Overlap {
                address,
                length,
                other: other.address,
            });
        }
        let mut options = MmapOptions::new();
        options.offset(offset).len(size);
        let memory = if writable {
            options.map_raw(file)
        } else {
            // SAFETY: only the atomics of `Page` access the mapping, never a slice.
            unsafe { options.map_copy(file) }.map(MmapRaw::from)
        };
        let memory = memory.map_err(|source| MapError::Host { address, source })?;
        let at = regions.partition_point(|r| r.address < address);
        regions.insert(
            at,
            Arc::new(Region {
                address,
                length,
                memory,
            }),
        );
        Ok(())
    }

    /// Removes a region.
    ///
    /// # Errors
    ///
    /// [`MapError::Unknown`].
    pub fn remove(&self, address: u64, length: u64) -> Result<(), MapError> {
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        let at = regions
            .iter()
            .position(|r| r.address == address && r.length == length);
        regions.remove(at.ok_or(MapError::Unknown { address, length })?);
        Ok(())
    }

    /// Removes all regions.
    pub fn clear(&self) {
        self.regions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Bus for Mapped {
    fn page(&self, address: u64) -> Option<Page<'_>> {
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        let after = regions.partition_point(|r| r.address <= address);
        let region = regions.get(after.checked_sub(1)?)?;
        let offset = (address - region.address) & !(PAGE_SIZE as u64 - 1);
        if offset >= region.length {
            return None;
        }
        // SAFETY: the mapping has `length` bytes, in whole pages, and `offset` is below; the page's share of the region
        // keeps it mapped.
        unsafe {
            let base = NonNull::new_unchecked(region.memory.as_mut_ptr().add(offset as usize));
            Some(Page::new(base, Some(region.clone())))
        }
    }
}
