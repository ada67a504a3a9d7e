// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at the recorded addresses.

use gpureplay_cuda_launch::abi::{
    AccessDescriptor, AllocationProperties, PAGE, RESERVATION, Status, attribute,
};
use gpureplay_cuda_launch::recording::{Launch, RegionKind, Run};

use crate::error::driver;
use crate::{Gpu, ReplayError};

const HOST_PAGE_BYTES: u64 = 4096;

/// Ranges in pages, joined; ascending, without overlaps.
fn rounded(regions: impl Iterator<Item = (u64, u64)>, page: u64) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    // The format's regions ascend without overlaps, below 2^47.
    for (start, end) in regions {
        let (start, end) = (start / page * page, end.next_multiple_of(page));
        match ranges.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => ranges.push((start, end)),
        }
    }
    ranges
}

fn touches(ranges: &[(u64, u64)], (start, end): (u64, u64)) -> bool {
    // Only the first that ends after the start can touch.
    let next = ranges.partition_point(|range| range.1 <= start);
    ranges.get(next).is_some_and(|range| end > range.0)
}

#[derive(Clone, Copy)]
pub(crate) struct Span {
    range: (u64, u64),
    kind: RegionKind,
}

pub(crate) fn of_launch(launch: &Launch) -> Vec<Span> {
    let spans = launch.regions.iter().map(|region| Span {
        range: (region.address, region.address + region.size),
        kind: region.kind,
    });
    spans.collect()
}

pub(crate) fn of_run(run: &Run) -> Vec<Span> {
    let spans = run.memory.iter().map(|memory| Span {
        range: (memory.address, memory.address + memory.size),
        kind: RegionKind::Device,
    });
    spans.collect()
}

/// Host memory inside a block reserved for device memory must be device memory; kernels see no difference.
pub(crate) fn on_device(spans: &[Span]) -> Vec<bool> {
    let device = spans.iter().filter(|span| span.kind == RegionKind::Device);
    let blocks = rounded(device.map(|span| span.range), RESERVATION);
    spans
        .iter()
        .map(|span| span.kind == RegionKind::Device || touches(&blocks, span.range))
        .collect()
}

fn ranges(spans: &[Span], device: bool, page: u64) -> Vec<(u64, u64)> {
    let all = spans.iter().zip(on_device(spans));
    let wanted = all.filter(|(_, on_device)| *on_device == device);
    rounded(wanted.map(|(span, _)| span.range), page)
}

fn bytes(start: u64, end: u64) -> Result<usize, ReplayError> {
    usize::try_from(end - start)
        .map_err(|_| ReplayError::Impossible("a region is larger than memory"))
}

pub(crate) struct Room {
    gpu: Gpu,
    reserved: Vec<(u64, usize)>,
    mapped: Vec<(u64, usize)>,
}

impl Room {
    /// Reserves whole blocks: the driver rounds addresses up to 32 MiB.
    pub(crate) fn reserve(gpu: &Gpu, spans: &[Span]) -> Result<Self, ReplayError> {
        let mut room = Self {
            gpu: gpu.clone(),
            reserved: Vec::new(),
            mapped: Vec::new(),
        };
        for (start, end) in ranges(spans, true, RESERVATION) {
            let size = bytes(start, end)?;
            let mut address = 0;
            // SAFETY: a pointer to a local.
            let status = unsafe {
                gpu.driver
                    .cuMemAddressReserve(&raw mut address, size, PAGE as usize, start, 0)
            };
            let taken = ReplayError::Collision {
                address: start,
                size: end - start,
            };
            if status == Status::OUT_OF_MEMORY || status == Status::INVALID_VALUE {
                return Err(taken);
            }
            driver("cuMemAddressReserve", status)?;
            room.reserved.push((address, size));
            if address != start {
                return Err(taken);
            }
        }
        Ok(room)
    }

    pub(crate) fn map(&mut self, spans: &[Span]) -> Result<(), ReplayError> {
        let properties = AllocationProperties::pinned(self.gpu.device);
        let access = AccessDescriptor::read_write(self.gpu.device);
        let driver_ = &self.gpu.driver;
        for (start, end) in ranges(spans, true, PAGE) {
            let size = bytes(start, end)?;
            let mut handle = 0;
            // SAFETY: pointers to locals; the range lies in our reservation.
            unsafe {
                driver(
                    "cuMemCreate",
                    driver_.cuMemCreate(&raw mut handle, size, &raw const properties, 0),
                )?;
                driver("cuMemMap", driver_.cuMemMap(start, size, 0, handle, 0))?;
                self.mapped.push((start, size));
                // The memory stays until it is unmapped.
                driver("cuMemRelease", driver_.cuMemRelease(handle))?;
                driver(
                    "cuMemSetAccess",
                    driver_.cuMemSetAccess(start, size, &raw const access, 1),
                )?;
            }
        }
        for (start, end) in ranges(spans, false, HOST_PAGE_BYTES) {
            map_host(&self.gpu, start, end)?;
        }
        Ok(())
    }

    /// Gives nothing back on drop: something may still use it.
    pub(crate) fn leave(&mut self) {
        self.reserved.clear();
        self.mapped.clear();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let driver_ = &self.gpu.driver;
        for (address, size) in self.mapped.drain(..) {
            // SAFETY: our mapping, which nothing uses any more.
            let _ = unsafe { driver_.cuMemUnmap(address, size) };
        }
        for (address, size) in self.reserved.drain(..) {
            // SAFETY: our reservation.
            let _ = unsafe { driver_.cuMemAddressFree(address, size) };
        }
    }
}

/// Stays until the process ends.
fn map_host(gpu: &Gpu, start: u64, end: u64) -> Result<(), ReplayError> {
    let size = bytes(start, end)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let wanted = start as *mut libc::c_void;
    // SAFETY: a new mapping that replaces none.
    let at = unsafe {
        libc::mmap(
            wanted,
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if at != wanted {
        if at != libc::MAP_FAILED {
            // SAFETY: our mapping, which an old kernel without the flag put elsewhere.
            unsafe { libc::munmap(at, size) };
        }
        return Err(ReplayError::Collision {
            address: start,
            size: end - start,
        });
    }
    // SAFETY: our mapping, which stays.
    let status = unsafe {
        gpu.driver
            .cuMemHostRegister_v2(at, size, attribute::host::DEVICE_MAP)
    };
    driver("cuMemHostRegister_v2", status)
}

#[cfg(test)]
mod tests {
    use super::touches;

    #[test]
    fn a_range_touches_what_it_shares_a_byte_with() {
        let ranges = [(10, 20), (30, 40), (50, 60)];
        for range in [(0, 11), (9, 70), (19, 20), (25, 31), (39, 41), (59, 99)] {
            assert!(touches(&ranges, range), "{range:?}");
        }
        for range in [(0, 10), (20, 30), (40, 50), (60, 70)] {
            assert!(!touches(&ranges, range), "{range:?}");
        }
        assert!(!touches(&[], (0, 1)));
    }
}
