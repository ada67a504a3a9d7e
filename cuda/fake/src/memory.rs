// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device memory as anonymous mappings.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gpureplay_cuda_launch::abi::{PAGE, RESERVATION, Status};

/// Allocations lie above, at random as a GPU's.
const BASE: u64 = 0x2000_0000_0000;

#[derive(Default)]
pub(crate) struct Memory {
    next: u64,
    allocations: HashMap<u64, usize>,
    reservations: HashMap<u64, usize>,
    physical: HashMap<u64, usize>,
    /// Of other GPUs than the first.
    owners: HashMap<u64, u64>,
    handles: u64,
}

pub(crate) fn memory() -> MutexGuard<'static, Memory> {
    static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(Mutex::default);
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn map(address: u64, size: usize, protection: i32) -> Option<u64> {
    let fixed = if address == 0 {
        0
    } else {
        libc::MAP_FIXED_NOREPLACE
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: a new mapping that replaces none.
    let at = unsafe { libc::mmap(address as *mut _, size, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    let at = at as u64;
    if address != 0 && at != address {
        unmap(at, size);
        return None;
    }
    Some(at)
}

fn unmap(address: u64, size: usize) {
    // SAFETY: a mapping that `map` made.
    unsafe { libc::munmap(address as *mut _, size) };
}

fn protect(address: u64, size: usize, protection: i32) {
    // SAFETY: within a mapping that `map` made.
    unsafe { libc::mprotect(address as *mut _, size, protection) };
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Memory {
    pub(crate) fn allocate(&mut self, size: usize) -> Result<u64, Status> {
        if size == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if self.next == 0 {
            self.next = BASE + u64::from(std::process::id() % 4096) * RESERVATION * 4;
        }
        let mapped = size
            .checked_next_multiple_of(PAGE as usize)
            .ok_or(Status::OUT_OF_MEMORY)?;
        for _ in 0..64 {
            let address = self.next;
            self.next += mapped as u64;
            if let Some(address) = map(address, mapped, READ_WRITE) {
                self.allocations.insert(address, mapped);
                return Ok(address);
            }
        }
        Err(Status::OUT_OF_MEMORY)
    }

    pub(crate) fn belongs(&mut self, address: u64, gpu: u64) {
        self.owners.insert(address, gpu);
    }

    pub(crate) fn owner(&self, address: u64) -> Result<i32, Status> {
        if self.range(address).is_err() && !self.reserved(address, 1) {
            return Err(Status::INVALID_VALUE);
        }
        let owner = self.owners.get(&address).copied().unwrap_or(0);
        Ok(i32::try_from(owner).unwrap_or(-1))
    }

    pub(crate) fn free(&mut self, address: u64) -> Result<(), Status> {
        let size = self
            .allocations
            .remove(&address)
            .ok_or(Status::INVALID_VALUE)?;
        unmap(address, size);
        Ok(())
    }

    pub(crate) fn range(&self, address: u64) -> Result<(u64, usize), Status> {
        let inside = |(start, size): &(&u64, &usize)| {
            address >= **start && address < **start + **size as u64
        };
        let found = self.allocations.iter().find(inside);
        found
            .map(|(start, size)| (*start, *size))
            .ok_or(Status::INVALID_VALUE)
    }

    pub(crate) fn reserve(
        &mut self,
        size: usize,
        wanted: u64,
        elsewhere: bool,
    ) -> Result<u64, Status> {
        if size == 0 || !(size as u64).is_multiple_of(PAGE) || wanted >= 1 << 47 {
            return Err(Status::INVALID_VALUE);
        }
        let wanted = wanted.next_multiple_of(RESERVATION);
        let at = if elsewhere {
            None
        } else {
            map(wanted, size, libc::PROT_NONE)
        };
        let at = at
            .or_else(|| map(0, size, libc::PROT_NONE))
            .ok_or(Status::OUT_OF_MEMORY)?;
        self.reservations.insert(at, size);
        Ok(at)
    }

    pub(crate) fn unreserve(&mut self, address: u64, size: usize) -> Result<(), Status> {
        if self.reservations.get(&address) != Some(&size) {
            return Err(Status::INVALID_VALUE);
        }
        self.reservations.remove(&address);
        unmap(address, size);
        Ok(())
    }

    pub(crate) fn make(&mut self, size: usize) -> Result<u64, Status> {
        if size == 0 || !(size as u64).is_multiple_of(PAGE) {
            return Err(Status::INVALID_VALUE);
        }
        self.handles += 1;
        self.physical.insert(self.handles, size);
        Ok(self.handles)
    }

    pub(crate) fn release(&mut self, handle: u64) -> Result<(), Status> {
        self.physical
            .remove(&handle)
            .map(|_| ())
            .ok_or(Status::INVALID_VALUE)
    }

    fn reserved(&self, address: u64, size: usize) -> bool {
        self.reservations.iter().any(|(start, length)| {
            address >= *start && address.saturating_add(size as u64) <= start + *length as u64
        })
    }

    pub(crate) fn map(&self, address: u64, size: usize, handle: u64) -> Result<(), Status> {
        if self.physical.get(&handle) == Some(&size) && self.reserved(address, size) {
            Ok(())
        } else {
            Err(Status::INVALID_VALUE)
        }
    }

    pub(crate) fn access(&self, address: u64, size: usize) -> Result<(), Status> {
        if !self.reserved(address, size) {
            return Err(Status::INVALID_VALUE);
        }
        protect(address, size, READ_WRITE);
        Ok(())
    }

    pub(crate) fn unmap(&self, address: u64, size: usize) -> Result<(), Status> {
        if !self.reserved(address, size) {
            return Err(Status::INVALID_VALUE);
        }
        protect(address, size, libc::PROT_NONE);
        Ok(())
    }
}
