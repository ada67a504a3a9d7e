// SPDX-License-Identifier: MIT OR Apache-2.0
//! Physical memory as the GPU sees it.

use crate::{PAGE_SIZE, Page};

/// No memory at a bus address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory at bus address {address:#x}")]
pub struct BusError {
    /// First byte without memory.
    pub address: u64,
}

/// The GPU's physical address space.
pub trait Bus: Send + Sync {
    /// An address's page (low 12 bits ignored); `None`: a bus error.
    fn page(&self, address: u64) -> Option<Page<'_>>;

    /// Reads from `address` on.
    ///
    /// # Errors
    ///
    /// First address without memory; earlier bytes were read.
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), BusError> {
        let mut done = 0;
        while done < to.len() {
            let (page, offset) = locate(self, address, done)?;
            done += page.copy_to_slice(offset, &mut to[done..]);
        }
        Ok(())
    }

    /// Writes from `address` on.
    ///
    /// # Errors
    ///
    /// First address without memory; earlier bytes were written.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), BusError> {
        let mut done = 0;
        while done < from.len() {
            let (page, offset) = locate(self, address, done)?;
            done += page.copy_from_slice(offset, &from[done..]);
        }
        Ok(())
    }
}

fn locate<B: Bus + ?Sized>(
    bus: &B,
    address: u64,
    done: usize,
) -> Result<(Page<'_>, usize), BusError> {
    let at = address
        .checked_add(done as u64)
        .ok_or(BusError { address: u64::MAX })?;
    let page = bus.page(at).ok_or(BusError { address: at })?;
    Ok((page, at as usize & (PAGE_SIZE - 1)))
}

impl<B: Bus + ?Sized> Bus for std::sync::Arc<B> {
    fn page(&self, address: u64) -> Option<Page<'_>> {
        (**self).page(address)
    }
}

impl<B: Bus + ?Sized> Bus for &B {
    fn page(&self, address: u64) -> Option<Page<'_>> {
        (**self).page(address)
    }
}
