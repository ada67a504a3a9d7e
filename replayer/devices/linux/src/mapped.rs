// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory and registers shared with a device.

use std::fs::File;
use std::io;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::barrier;
use crate::pin::Pin;

/// GPU and interrupt handlers change it at any time: no Rust reference exists, only checked raw pointers.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: MmapRaw,
    /// Must outlive the mapping.
    _pin: Option<Pin>,
}

impl Mapped {
    pub(crate) fn new(file: &File, offset: u64, length: usize) -> io::Result<Self> {
        let map = MmapOptions::new()
            .offset(offset)
            .len(length)
            .map_raw(file)?;
        Ok(Self { map, _pin: None })
    }

    /// Never write to it.
    pub(crate) fn read_only(file: &File, offset: u64, length: usize) -> io::Result<Self> {
        let map = MmapOptions::new()
            .offset(offset)
            .len(length)
            .map_raw_read_only(file)?;
        Ok(Self { map, _pin: None })
    }

    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(length).map_anon()?.into();
        Ok(Self { map, _pin: None })
    }

    /// Its pages keep their physical addresses.
    pub(crate) fn pinned(length: usize) -> io::Result<Self> {
        let memory = Self::locked(length)?;
        // A child of `fork` needs no copy.
        memory.map.advise(Advice::DontFork)?;
        let pin = Pin::new(memory.address(), length)?;
        Ok(Self {
            map: memory.map,
            _pin: Some(pin),
        })
    }

    /// Never swapped out; the kernel may move its pages.
    pub(crate) fn locked(length: usize) -> io::Result<Self> {
        let memory = Self::anonymous(length)?;
        memory.map.lock()?;
        // Otherwise it may be the shared zero page.
        memory.clear();
        Ok(memory)
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn address(&self) -> usize {
        self.map.as_ptr() as usize
    }

    fn contains(&self, offset: usize, length: usize) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.len())
    }

    /// All ones outside the mapping.
    pub(crate) fn read32(&self, offset: usize) -> u32 {
        if !offset.is_multiple_of(4) || !self.contains(offset, 4) {
            return u32::MAX;
        }
        // SAFETY: aligned (mappings start at a page) and inside the mapping; volatile, so a device sees one access.
        let value = unsafe { self.map.as_ptr().add(offset).cast::<u32>().read_volatile() };
        barrier::after_register_read();
        value
    }

    /// Ignored outside the mapping.
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

    /// `false`, without copying, outside.
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

    pub(crate) fn clear(&self) {
        // SAFETY: the whole mapping, to which no reference exists.
        unsafe { std::ptr::write_bytes(self.map.as_mut_ptr(), 0, self.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped() -> Mapped {
        Mapped::anonymous(8192).unwrap()
    }

    #[test]
    fn registers_end_with_the_mapping() {
        let map = mapped();
        map.write32(0, 1);
        map.write32(8188, 2);
        assert_eq!((map.read32(0), map.read32(8188)), (1, 2));
        // Across the end, after it, overflowing, between words.
        for offset in [
            8189,
            8190,
            8191,
            8192,
            8196,
            1 << 40,
            usize::MAX - 3,
            usize::MAX,
            1,
            2,
            3,
        ] {
            map.write32(offset, 3);
            assert_eq!(map.read32(offset), u32::MAX, "{offset}");
        }
        assert_eq!((map.read32(0), map.read32(8188)), (1, 2));
    }

    #[test]
    fn copies_end_with_the_mapping() {
        let map = mapped();
        assert!(map.write(8190, &[1, 2]));
        let mut bytes = [9; 4];
        for (offset, length) in [
            (8190, 3),
            (8192, 1),
            (8193, 0),
            (usize::MAX, 1),
            (usize::MAX - 1, 2),
            (usize::MAX, 0),
        ] {
            assert!(!map.write(offset, &vec![7; length]), "{offset} {length}");
            assert!(!map.read(offset, &mut bytes[..length]), "{offset} {length}");
        }
        assert_eq!(bytes, [9; 4]);
        assert!(map.write(8192, &[]) && map.read(8192, &mut []));
        let mut all = vec![9; 8192];
        assert!(map.read(0, &mut all));
        assert_eq!(
            (&all[8188..], all[..8190].iter().max()),
            (&[0, 0, 1, 2][..], Some(&0))
        );
        assert!(!map.read(1, &mut all));
        map.clear();
        assert!(map.read(0, &mut all) && all.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_others_change_meanwhile_is_some_value() {
        let map = std::sync::Arc::new(mapped());
        let gpu = map.clone();
        let writer = std::thread::spawn(move || {
            for value in 0..20_000u32 {
                gpu.write32(4096, value * 0x1_0001);
            }
        });
        let mut last = 0;
        while last < 19_999 && !writer.is_finished() {
            let value = map.read32(4096);
            assert_eq!(value >> 16, value & 0xffff, "a word is read at once");
            assert!(value & 0xffff >= last);
            last = value & 0xffff;
        }
        writer.join().unwrap();
        assert_eq!(map.read32(4096), 19_999 * 0x1_0001);
    }

    #[test]
    fn pages_are_pinned_or_it_is_said_why() {
        match Mapped::pinned(8192) {
            Ok(map) => {
                assert!(map.write(4096, b"here"));
                let mut bytes = [0; 4];
                assert!(map.read(4096, &mut bytes));
                assert_eq!(&bytes, b"here");
            }
            // A sandbox, a memory limit, or no io_uring.
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
