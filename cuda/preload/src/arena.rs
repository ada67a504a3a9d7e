// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device memory at addresses free in any process (`--alloc arena`).
//!
//! Native, random addresses may be taken in a replay. The arena lies above 2^44, a terabyte per GPU, reserved at
//! first use, before the driver puts anything there. Slabs are mapped whole, so allocations never span mappings.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use gpureplay_cuda_launch::abi::{
    AccessDescriptor, AllocationProperties, Driver, Handle, PAGE, RESERVATION, Status,
};

use crate::guard;
use crate::real::{current_device, driver};

const START: u64 = 1 << 44;
const SPAN: u64 = 1 << 40;
/// Linux maps a process above it, or below `START`.
const END: u64 = 1 << 46;
/// As the driver's allocations.
const ALIGNMENT: u64 = 512;

static ARENA: Mutex<Arena> = Mutex::new(Arena {
    slabs: Vec::new(),
    reserved: BTreeMap::new(),
});

struct Slab {
    device: i32,
    start: u64,
    size: u64,
    /// 0 if given back.
    memory: Handle,
    /// Address and size.
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
}

struct Arena {
    slabs: Vec<Slab>,
    reserved: BTreeMap<i32, bool>,
}

static NEXT_RESERVATION: AtomicU64 = AtomicU64::new(1 << 45);

/// Picks addresses for reservations without a wanted address.
pub(crate) fn addresses(size: usize, alignment: usize) -> u64 {
    let block = RESERVATION.max(alignment as u64);
    let size = (size as u64).div_ceil(block).saturating_mul(block);
    let taken = NEXT_RESERVATION.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |next| {
        let begin = next.checked_next_multiple_of(block)?;
        begin.checked_add(size).filter(|end| *end <= END)
    });
    // Without room the driver chooses.
    taken.map_or(0, |next| next.next_multiple_of(block))
}

fn reserve(driver: &Driver, base: u64) -> bool {
    let Ok(span) = usize::try_from(SPAN) else {
        return false;
    };
    let mut address = 0;
    // SAFETY: a pointer to a local.
    let status =
        unsafe { driver.cuMemAddressReserve(&raw mut address, span, PAGE as usize, base, 0) };
    if status == Status::SUCCESS && address != base {
        // SAFETY: the reservation that was just made.
        let _ = unsafe { driver.cuMemAddressFree(address, span) };
    }
    status == Status::SUCCESS && address == base
}

fn arena() -> MutexGuard<'static, Arena> {
    guard::lock(&ARENA)
}

impl Slab {
    fn new(device: i32, start: u64, size: u64) -> Self {
        Self {
            device,
            start,
            size,
            memory: 0,
            free: BTreeMap::from([(start, size)]),
            used: BTreeMap::new(),
        }
    }

    fn take(&mut self, size: u64) -> Option<u64> {
        let (&start, &room) = self.free.iter().find(|(_, room)| **room >= size)?;
        self.free.remove(&start);
        if room > size {
            self.free.insert(start + size, room - size);
        }
        self.used.insert(start, size);
        Some(start)
    }

    fn give(&mut self, mut start: u64) -> bool {
        let Some(mut size) = self.used.remove(&start) else {
            return false;
        };
        if let Some(after) = self.free.remove(&(start + size)) {
            size += after;
        }
        if let Some((&before, &room)) = self.free.range(..start).next_back()
            && before + room == start
        {
            start = before;
            size += room;
        }
        self.free.insert(start, size);
        true
    }

    fn back(&mut self, driver: &Driver) -> Result<(), Status> {
        let properties = AllocationProperties::pinned(self.device);
        let access = AccessDescriptor::read_write(self.device);
        let size = usize::try_from(self.size).map_err(|_| Status::OUT_OF_MEMORY)?;
        // SAFETY: pointers to locals and a field; the range is a reservation of ours.
        unsafe {
            driver
                .cuMemCreate(&raw mut self.memory, size, &raw const properties, 0)
                .check()?;
            driver
                .cuMemMap(self.start, size, 0, self.memory, 0)
                .check()?;
            driver
                .cuMemSetAccess(self.start, size, &raw const access, 1)
                .check()
        }
    }

    fn release(&mut self, driver: &Driver) {
        if self.memory != 0 && self.used.is_empty() {
            let size = usize::try_from(self.size).unwrap_or(0);
            // SAFETY: nothing of the program's lies here any more. A failure leaves memory that the process gives back.
            unsafe {
                let _ = driver.cuMemUnmap(self.start, size);
                let _ = driver.cuMemRelease(self.memory);
            }
            self.memory = 0;
        }
    }
}

impl Arena {
    fn allocate(&mut self, driver: &Driver, device: i32, size: u64) -> Result<u64, Status> {
        let own = |slab: &&mut Slab| slab.device == device && slab.memory != 0;
        if let Some(address) = self
            .slabs
            .iter_mut()
            .filter(own)
            .find_map(|slab| slab.take(size))
        {
            return Ok(address);
        }
        let wanted = size
            .checked_next_multiple_of(RESERVATION)
            .ok_or(Status::OUT_OF_MEMORY)?;
        let idle =
            |slab: &&mut Slab| slab.device == device && slab.memory == 0 && slab.size == wanted;
        if let Some(slab) = self.slabs.iter_mut().find(idle) {
            slab.back(driver)?;
            return slab.take(size).ok_or(Status::OUT_OF_MEMORY);
        }
        let base = START + u64::try_from(device).map_err(|_| Status::INVALID_VALUE)? * SPAN;
        let end = self
            .slabs
            .iter()
            .filter(|slab| slab.device == device)
            .map(|slab| slab.start + slab.size)
            .max()
            .unwrap_or(base);
        if end + wanted > base + SPAN {
            return Err(Status::OUT_OF_MEMORY);
        }
        let reserved = self.reserved.entry(device);
        if !*reserved.or_insert_with(|| reserve(driver, base)) {
            return Err(Status::INVALID_VALUE);
        }
        let mut slab = Slab::new(device, end, wanted);
        let backed = slab.back(driver);
        let address = backed.and_then(|()| slab.take(size).ok_or(Status::OUT_OF_MEMORY));
        if address.is_err() && slab.memory != 0 {
            slab.release(driver);
        }
        self.slabs.push(slab);
        address
    }
}

pub(crate) fn allocate(size: usize) -> Result<u64, Status> {
    let device = current_device()?;
    let driver = driver()?;
    let size = (size as u64)
        .checked_next_multiple_of(ALIGNMENT)
        .filter(|size| *size > 0)
        .ok_or(Status::INVALID_VALUE)?;
    let mut arena = arena();
    match arena.allocate(driver, device, size) {
        Err(Status::OUT_OF_MEMORY) => {
            for slab in &mut arena.slabs {
                slab.release(driver);
            }
            arena.allocate(driver, device, size)
        }
        answer => answer,
    }
}

/// False outside the arena. Nothing may use it any more.
pub(crate) fn free(address: u64) -> bool {
    arena().slabs.iter_mut().any(|slab| slab.give(address))
}

pub(crate) fn holds(address: u64) -> bool {
    let slabs = &arena().slabs;
    let mut all = slabs.iter().map(|slab| slab.start..slab.start + slab.size);
    all.any(|slab| slab.contains(&address))
}

pub(crate) fn range(address: u64) -> Option<(u64, u64)> {
    arena().slabs.iter().find_map(|slab| {
        let (start, size) = slab.used.range(..=address).next_back()?;
        (address - start < *size).then_some((*start, *size))
    })
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn allocations_do_not_overlap_and_free_neighbours_join() {
        let mut slab = Slab::new(0, 0x1000, 0x1000);
        let pieces: Vec<u64> = (0..8).map(|_| slab.take(0x200).unwrap()).collect();
        assert_eq!(
            pieces,
            (0..8).map(|i| 0x1000 + i * 0x200).collect::<Vec<_>>()
        );
        assert_eq!(slab.take(0x200), None);
        for index in [1, 3, 2] {
            assert!(slab.give(pieces[index]));
        }
        assert_eq!(slab.free.len(), 1);
        assert_eq!(slab.take(0x600), Some(0x1200));
        assert!(!slab.give(0x1400), "is inside another one");
        for address in [0x1000, 0x1200, 0x1800, 0x1a00, 0x1c00, 0x1e00] {
            assert!(slab.give(address), "{address:#x}");
        }
        assert_eq!(slab.free.iter().next(), Some((&0x1000, &0x1000)));
        assert!(slab.used.is_empty() && !slab.give(0x1000));
    }
}
