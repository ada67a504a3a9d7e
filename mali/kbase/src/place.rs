// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions at the addresses of a recording.
//!
//! kbase gives a region of a 64-bit process the same address on CPU and GPU, takes the highest gap of the process's
//! address space that is large enough (first below the place where libraries begin, then above), and refuses a wish. So
//! everything but the one gap that is wanted is reserved while regions are made. Executable regions begin at a multiple
//! of 16 MiB (the shader core's program counter has 24 bits), so code moves to other addresses with the same low 24 bits.

use std::fs;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::context::{Context, PAGE, Request};
use crate::error::Error;

/// Alignment of executable regions.
pub(crate) const CODE_ALIGNMENT: u64 = 1 << 24;
/// Regions of 2 MiB and more would be aligned; neighbours of this size look the same to the GPU.
pub(crate) const LARGEST: u64 = 1 << 20;
/// kbase places nothing below.
const LOWEST: u64 = 2 << 20;
/// Room that is left below the stack: the kernel's guard gap. Linux 5.10 may put a region there all the same.
const STACK: u64 = 1 << 20;
/// Ends of a process's address space on arm64, by what kernels are configured for.
const ENDS: [u64; 3] = [1 << 48, 1 << 42, 1 << 39];

/// The rest of the address space, taken while regions are placed.
pub(crate) struct Reservation {
    taken: Vec<(u64, u64)>,
    placed: Vec<(u64, u64)>,
}

impl Reservation {
    /// Takes every gap of the address space from 2 MiB on; room for this many regions.
    pub(crate) fn new(regions: usize) -> Result<Reservation, Error> {
        let path = "/proc/self/maps";
        let maps = fs::read_to_string(path).map_err(|source| Error::File {
            path: path.into(),
            source,
        })?;
        let (gaps, end) = gaps(&maps);
        // Room for all entries now: while the address space is taken, allocations may fail.
        let mut reservation = Reservation {
            taken: Vec::with_capacity(gaps.len() + 1),
            placed: Vec::with_capacity(regions),
        };
        for (start, end) in gaps {
            reserve(start, end)?;
            reservation.taken.push((start, end));
        }
        // Above the last mapping, usually the stack, whose place is random.
        for top in ENDS.into_iter().filter(|top| *top > end) {
            if reserve(end, top).is_ok() {
                reservation.taken.push((end, top));
                break;
            }
        }
        Ok(reservation)
    }

    /// Makes a region at `va`.
    pub(crate) fn place(
        &mut self,
        context: &Context,
        va: u64,
        request: &Request,
        executable: bool,
    ) -> Result<(), Error> {
        let end = va.saturating_add(request.pages.saturating_mul(PAGE));
        // The driver searches for room that would do at the worst alignment.
        let start = if executable {
            va.saturating_sub(CODE_ALIGNMENT)
        } else {
            va
        };
        // What was not reserved may be this program's own, and a placed region is somebody's already.
        if !is_free(&self.taken, &self.placed, start, end) {
            return Err(Error::Taken { start, end });
        }
        release(start, end)?;
        let found = context.allocate(request)?.as_ptr() as u64;
        if found != va {
            return Err(Error::Place { wanted: va, found });
        }
        self.placed.push((va, end));
        if start < va {
            reserve(start, va)?;
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.placed.sort_unstable();
        for &(start, end) in &self.taken {
            let mut at = start;
            for &(from, to) in self
                .placed
                .iter()
                .filter(|(from, _)| (start..end).contains(from))
            {
                // Nothing could be done about a failure, and the rest works without.
                let _ = release(at, from);
                at = to;
            }
            let _ = release(at, end);
        }
    }
}

/// Whether a range lies in one that was taken, and none was placed in it.
fn is_free(taken: &[(u64, u64)], placed: &[(u64, u64)], start: u64, end: u64) -> bool {
    let inside = |&(from, to): &(u64, u64)| from <= start && end <= to;
    let apart = |&(from, to): &(u64, u64)| end <= from || to <= start;
    taken.iter().any(inside) && placed.iter().all(apart)
}

/// Gaps between the lines of /proc/self/maps, and the end of the last one.
fn gaps(maps: &str) -> (Vec<(u64, u64)>, u64) {
    let mut out = Vec::new();
    let mut end = LOWEST;
    for line in maps.lines() {
        let range = line
            .split_once(' ')
            .and_then(|(range, _)| range.split_once('-'));
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((from, to)) = range.and_then(|(a, b)| Some((number(a)?, number(b)?))) else {
            continue;
        };
        let stack = line.ends_with("[stack]");
        let limit = if stack {
            from.saturating_sub(STACK)
        } else {
            from
        };
        if limit > end {
            out.push((end, limit));
        }
        end = end.max(to);
    }
    (out, end)
}

fn reserve(start: u64, end: u64) -> Result<(), Error> {
    let length = NonZeroUsize::new((end - start) as usize).ok_or(Error::Size(0))?;
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE | MapFlags::MAP_FIXED_NOREPLACE;
    // SAFETY: NOREPLACE: the kernel refuses rather than touch a mapping of this program.
    let at = unsafe {
        mmap_anonymous(
            NonZeroUsize::new(start as usize),
            length,
            ProtFlags::PROT_NONE,
            flags,
        )
    }
    .map_err(Error::call("mmap"))?;
    let found = at.as_ptr() as u64;
    if found != start {
        // Linux before 4.17 does not know the flag, and takes another range where this one is not free.
        release(found, found.saturating_add(end - start))?;
        return Err(Error::Taken { start, end });
    }
    Ok(())
}

fn release(start: u64, end: u64) -> Result<(), Error> {
    if start >= end {
        return Ok(());
    }
    let address = NonNull::new(start as *mut std::ffi::c_void).ok_or(Error::Size(0))?;
    // SAFETY: all callers name ranges that `reserve` mapped and in which no region lies: no object of this program is there.
    unsafe { munmap(address, (end - start) as usize) }.map_err(Error::call("munmap"))
}

#[cfg(test)]
mod tests {
    use super::{gaps, is_free};

    #[test]
    fn only_what_was_reserved_is_free() {
        let taken = [(0x20_0000, 0x40_0000), (0x50_0000, 0x70_0000)];
        let placed = [(0x24_0000, 0x25_0000)];
        let free = |start, end| is_free(&taken, &placed, start, end);
        assert!(
            free(0x20_0000, 0x24_0000) && free(0x25_0000, 0x40_0000) && free(0x50_0000, 0x70_0000)
        );
        // The program's own, in part or between two gaps; a region's; backwards.
        assert!(!free(0x40_0000, 0x41_0000) && !free(0x3f_f000, 0x40_1000));
        assert!(!free(0x30_0000, 0x60_0000) && !free(0x1f_f000, 0x20_1000));
        assert!(!free(0x24_f000, 0x25_1000) && !free(0x20_0000, 0x40_0000));
        assert!(!free(0x24_0000, 0x25_0000) && !free(u64::MAX - 0xfff, u64::MAX));
    }

    #[test]
    fn gaps_leave_room_below_the_stack() {
        let maps = "00400000-00500000 r-xp 00000000 00:00 0 /bin/x\n\
                    00700000-00800000 rw-p 00000000 00:00 0 [heap]\n\
                    7ff000000000-7ff000100000 rw-p 00000000 00:00 0 [stack]\n\
                    7ff100000000-7ff100001000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(
            gaps(maps),
            (
                vec![
                    (0x20_0000, 0x40_0000),
                    (0x50_0000, 0x70_0000),
                    (0x80_0000, 0x7fef_fff0_0000),
                    (0x7ff0_0010_0000, 0x7ff1_0000_0000)
                ],
                0x7ff1_0000_1000
            )
        );
    }
}
