// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reserves addresses while regions are placed.
//!
//! kbase gives a 64-bit process equal CPU and GPU addresses and refuses wishes. It takes the highest sufficient
//! gap, below the libraries first. So all but the wanted gap is reserved.

use std::fs::File;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::gaps::Gaps;
use super::placement::{CODE_ALIGNMENT, Step};

/// Ends of arm64's address space, by kernel configuration.
const ENDS: [u64; 3] = [1 << 48, 1 << 42, 1 << 39];

/// Other threads take addresses meanwhile.
const TRIES: u32 = 10;

#[derive(Debug)]
pub(crate) struct Area(u64);

impl Area {
    const LENGTH: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

    pub(crate) fn of_file(file: &File, offset: i64) -> Result<Self, Errno> {
        let (access, shared) = (ProtFlags::PROT_NONE, MapFlags::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this program.
        let at = unsafe { mmap(None, Self::LENGTH, access, shared, file, offset) }?;
        Ok(Self(at.as_ptr() as u64))
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let _ = release(self.0, self.0 + Self::LENGTH.get() as u64);
    }
}

/// Other threads get no memory while it exists.
#[derive(Debug)]
pub(crate) struct Reservation {
    taken: Vec<(u64, u64)>,
    placed: Vec<(u64, u64)>,
}

impl Reservation {
    /// # Errors
    /// `mmap`'s, or other threads keep taking addresses.
    pub(crate) fn of_process(regions: usize) -> Result<Self, Errno> {
        for _ in 0..TRIES {
            match Self::new(&Gaps::now()?, regions) {
                Err(Errno::EEXIST) => {}
                result => return result,
            }
        }
        Err(Errno::EEXIST)
    }

    /// Gives everything back on errors.
    fn new(gaps: &Gaps, regions: usize) -> Result<Self, Errno> {
        // Room for all entries: allocations may fail later.
        let mut reservation = Self {
            taken: Vec::with_capacity(gaps.iter().count() + 1),
            placed: Vec::with_capacity(2 * regions),
        };
        for (start, end) in gaps.iter() {
            reserve(start, end)?;
            reservation.taken.push((start, end));
        }
        for top in ENDS.into_iter().filter(|top| *top > gaps.end()) {
            if reserve(gaps.end(), top).is_ok() {
                reservation.taken.push((gaps.end(), top));
                break;
            }
        }
        Ok(reservation)
    }

    /// Frees room, calls `make`, takes the rest back. `None`: the room is not free.
    pub(crate) fn place<T>(
        &mut self,
        step: &Step,
        make: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<Option<T>, Errno> {
        let end = step.end();
        // The driver searches for the worst alignment.
        let start = match step.executable() {
            true => step.va.saturating_sub(CODE_ALIGNMENT),
            false => step.va,
        };
        if !is_free(&self.taken, &self.placed, start, end) {
            return Ok(None);
        }
        release(start, end)?;
        let made = make();
        self.placed.push((step.va, end));
        if start < step.va && reserve(start, step.va).is_err() {
            // Another thread was faster.
            self.placed.push((start, step.va));
        }
        made.map(Some)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.placed.sort_unstable();
        for &(start, end) in &self.taken {
            let inside = |&&(from, _): &&(u64, u64)| (start..end).contains(&from);
            let mut at = start;
            for &(from, to) in self.placed.iter().filter(inside) {
                let _ = release(at, from);
                at = to;
            }
            let _ = release(at, end);
        }
    }
}

fn is_free(taken: &[(u64, u64)], placed: &[(u64, u64)], start: u64, end: u64) -> bool {
    let inside = |&(from, to): &(u64, u64)| from <= start && start < end && end <= to;
    let apart = |&(from, to): &(u64, u64)| end <= from || to <= start;
    taken.iter().any(inside) && placed.iter().all(apart)
}

fn reserve(start: u64, end: u64) -> Result<(), Errno> {
    let length = NonZeroUsize::new((end - start) as usize).ok_or(Errno::EINVAL)?;
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE | MapFlags::MAP_FIXED_NOREPLACE;
    let wish = NonZeroUsize::new(start as usize);
    // SAFETY: NOREPLACE: the kernel refuses rather than touch a mapping of this program.
    let at = unsafe { mmap_anonymous(wish, length, ProtFlags::PROT_NONE, flags) }?;
    let found = at.as_ptr() as u64;
    if found != start {
        // Linux before 4.17 ignores the flag, and may take another range.
        release(found, found.saturating_add(end - start))?;
        return Err(Errno::EEXIST);
    }
    Ok(())
}

fn release(start: u64, end: u64) -> Result<(), Errno> {
    if start >= end {
        return Ok(());
    }
    let address = NonNull::new(start as *mut std::ffi::c_void).ok_or(Errno::EINVAL)?;
    // SAFETY: callers name ranges that `reserve` or `Area` mapped, without regions: no object of this program is there.
    unsafe { munmap(address, (end - start) as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_reserved_is_free() {
        let taken = [(0x20_0000, 0x40_0000), (0x50_0000, 0x70_0000)];
        let placed = [(0x24_0000, 0x25_0000)];
        let free = |start, end| is_free(&taken, &placed, start, end);
        assert!(
            free(0x20_0000, 0x24_0000) && free(0x25_0000, 0x40_0000) && free(0x50_0000, 0x70_0000)
        );
        assert!(!free(0x40_0000, 0x41_0000) && !free(0x3f_f000, 0x40_1000));
        assert!(!free(0x30_0000, 0x60_0000) && !free(0x1f_f000, 0x20_1000));
        assert!(!free(0x24_f000, 0x25_1000) && !free(0x20_0000, 0x40_0000));
        assert!(!free(0x24_0000, 0x25_0000) && !free(u64::MAX - 0xfff, u64::MAX));
        assert!(!free(0x24_0000, 0x23_0000));
    }

    #[test]
    fn a_reservation_leaves_one_place_and_goes_without_a_trace() {
        // Other threads may need memory: reserves a window only.
        let window = 1u64 << 40;
        let all = Gaps::now().unwrap();
        if !all.has(window, window + (64 << 20)) {
            return;
        }
        let gaps = Gaps::of(&[(window, window + (64 << 20))]);
        let step = |va, flags| Step {
            va,
            pages: 2,
            flags,
        };
        let mut reservation = Reservation::new(&gaps, 2).unwrap();
        assert!(!Gaps::now().unwrap().has(window, window + 4096));
        let code = step(window + (32 << 20), super::super::abi::flags::GPU_EXECUTE);
        let free = |from: u64, to: u64| Gaps::now().unwrap().has(from, to);
        let made = reservation.place(&code, || {
            let room = free(code.va - CODE_ALIGNMENT, code.end());
            assert!(room && !free(code.va, code.end() + 4096));
            Ok(7)
        });
        assert_eq!(made, Ok(Some(7)));
        assert_eq!(reservation.place(&code, || Ok(7)), Ok(None));
        assert!(free(code.va, code.end()) && !free(code.va - 4096, code.va));
        let failed = reservation.place(&step(window, 0), || Err::<(), _>(Errno::ENOMEM));
        assert_eq!(failed, Err(Errno::ENOMEM));
        drop(reservation);
        assert!(free(window, window + (64 << 20)));
    }
}
