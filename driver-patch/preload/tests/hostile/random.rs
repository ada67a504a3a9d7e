// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random requests from a seed: right shapes with maybe wrong handles, addresses, sizes and lists; memory that is
//! mapped, filled with half-right descriptors or streams, and run. No request waits: what never ends would be the
//! app's own affair.

mod chains;
mod shared;
mod streams;

use std::ffi::{c_int, c_void};
use std::ptr;

use mali_uapi::panfrost::request::Request;
use mali_uapi::panthor::ObjectArray;
use zerocopy::IntoBytes;

use crate::app::{Seen, ioctl};

const PAGE: usize = 4096;
const REQUESTS: u32 = 400;

pub(crate) struct App<'s> {
    fd: c_int,
    state: u64,
    /// Of objects, groups, heaps and address spaces.
    handles: Vec<u32>,
    /// Of the app and a large one: any other could be the recorder's.
    syncs: Vec<u32>,
    addresses: Vec<u64>,
    mapped: Vec<(*mut u8, usize)>,
    /// Arguments point there; it ends where memory ends.
    lists: *mut u8,
    /// Of four places in `lists`, the last one used.
    made: usize,
    seen: &'s mut Seen,
}

impl<'s> App<'s> {
    pub(crate) fn new(fd: c_int, seed: u64, seen: &'s mut Seen) -> Self {
        Self {
            fd,
            state: seed,
            handles: vec![0],
            syncs: vec![0xffff],
            addresses: vec![0],
            mapped: Vec::new(),
            lists: crate::app::half_page(),
            made: 0,
            seen,
        }
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, count: usize) -> usize {
        (self.random() % count as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn handle(&mut self) -> u32 {
        match self.below(8) {
            0 => self.random() as u32,
            _ => {
                let at = self.below(self.handles.len());
                self.handles[at]
            }
        }
    }

    /// Of the GPU or the file, mostly a real one, or near one.
    fn address(&mut self) -> u64 {
        let at = self.below(self.addresses.len());
        let known = self.addresses[at];
        let step = self.pick(&[64, 0x1000, 0x20_0000, 1, 0xffff_ffff_ffff_f000]);
        match self.below(8) {
            0 => self.random(),
            1 => known.wrapping_add(step),
            _ => known,
        }
    }

    fn size(&mut self) -> u64 {
        let most = self.random() >> 44;
        self.pick(&[
            0,
            1,
            64,
            4095,
            4096,
            4097,
            0x1_0000,
            0x20_0000,
            0x100_0000,
            0xffff_ffff,
            u64::MAX,
            most,
            4096,
            4096,
            8192,
        ])
    }

    fn flags(&mut self) -> u32 {
        let one = 1 << self.below(32);
        let any = self.random() as u32;
        self.pick(&[0, 0, 0, 1, 2, 4, one, any])
    }

    fn count(&mut self) -> u32 {
        let any = self.random() as u32;
        self.pick(&[0, 1, 1, 2, 3, 64, 0xffff, 0x1000_0000, u32::MAX, any])
    }

    /// At most 512 bytes; the page behind is missing, so a much longer list is not whole.
    fn list(&mut self, bytes: &[u8]) -> u64 {
        // Lists of one request must not overlap.
        self.made = (self.made + 1) % 4;
        let at = PAGE - bytes.len() - 512 * self.made;
        // SAFETY: inside the page that is there.
        let place = unsafe {
            let place = self.lists.add(at);
            ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
            place
        };
        let wild = self.random();
        let real = place.expose_provenance() as u64;
        self.pick(&[real, real, real, real, real, real, 0, 8, wild])
    }

    fn sync(&mut self) -> u32 {
        let at = self.below(self.syncs.len());
        self.syncs[at]
    }

    fn sync_list(&mut self) -> u64 {
        let handles = [(); 3].map(|()| self.sync());
        self.list(handles.as_bytes())
    }

    fn handles(&mut self) -> u64 {
        let handles = [(); 3].map(|()| self.handle());
        self.list(handles.as_bytes())
    }

    fn objects<T: IntoBytes + zerocopy::Immutable>(&mut self, list: &[T]) -> ObjectArray {
        let whole = list.as_bytes().len() as u32;
        let array = self.list(list.as_bytes());
        let stride = whole / list.len().max(1) as u32;
        ObjectArray {
            stride: self.pick(&[stride, stride, stride, stride, stride + 8, 0, 8, u32::MAX]),
            count: match self.below(6) {
                0 => self.count(),
                _ => list.len() as u32,
            },
            array,
        }
    }

    fn ask<T: IntoBytes>(&mut self, request: Request, argument: &mut T) -> bool {
        let known = request.size();
        let size = self.pick(&[known, known, known, known, known, known, 0, known + 8, 8]);
        let request = if size == known {
            request
        } else {
            request.of_size(size)
        };
        // Requests may state more bytes than the structure has.
        let mut bytes = [0_u64; 64];
        let length = size_of::<T>();
        // SAFETY: both have these bytes.
        unsafe {
            let from = ptr::from_mut(argument).cast::<u8>();
            ptr::copy_nonoverlapping(from, bytes.as_mut_ptr().cast(), length);
        }
        let real = bytes.as_mut_ptr().expose_provenance() as u64;
        let at = self.pick(&[real, real, real, real, real, real, real, real, 0, 9]);
        let answer = ioctl(self.fd, request.0, at);
        // SAFETY: as above; requests have arguments that any bytes are.
        unsafe {
            ptr::copy_nonoverlapping(
                bytes.as_ptr().cast(),
                ptr::from_mut(argument).cast::<u8>(),
                length,
            );
        }
        self.seen.push(format!("{:#x}: {answer:?}", request.0));
        answer.0 == 0
    }

    /// The offset may be of no object.
    fn map(&mut self) {
        let offset = self.address();
        let length = self.pick(&[PAGE, PAGE, 2 * PAGE, 16 * PAGE]);
        let rights = self.pick(&[3, 3, 3, libc::PROT_READ, 7]);
        let flags = self.pick(&[
            libc::MAP_SHARED,
            libc::MAP_SHARED,
            libc::MAP_SHARED,
            libc::MAP_PRIVATE,
        ]);
        // SAFETY: a new mapping, wherever the system has room.
        let place = unsafe {
            libc::mmap64(
                ptr::null_mut(),
                length,
                rights,
                flags,
                self.fd,
                offset as i64,
            )
        };
        let failed = place == libc::MAP_FAILED;
        self.seen.push(format!("map: {failed}"));
        if !failed && rights & 2 != 0 {
            self.mapped.push((place.cast(), length));
        } else if !failed {
            // SAFETY: nothing refers to it.
            unsafe { libc::munmap(place, length) };
        }
    }

    fn fill(&mut self) {
        if self.mapped.is_empty() {
            return;
        }
        let at = self.below(self.mapped.len());
        let (place, _) = self.mapped[at];
        if self.below(8) == 0 {
            let (place, length) = self.mapped.swap_remove(at);
            // SAFETY: nothing refers to it any more.
            unsafe { libc::munmap(place.cast::<c_void>(), length) };
            return;
        }
        // A job's header: type, dependencies, size, the next one; then what types have.
        let kind = (self.below(10) as u64) << 1 | 1 | 1 << 16;
        let dependencies = self.random() & self.pick(&[0, 0, 0x3_0003]) << 32;
        let mut words = [0_u64; 32];
        for word in &mut words {
            *word = match self.below(3) {
                0 => self.address(),
                1 => self.random(),
                _ => 0,
            };
        }
        (words[0], words[1], words[2]) = (0, 0, kind | dependencies);
        if self.below(4) != 0 {
            words[3] = 0;
        }
        let start = self.pick(&[0, 0, 0, 64, 2048]);
        for (index, word) in words.into_iter().enumerate() {
            // SAFETY: inside the first page of the mapping.
            unsafe {
                place
                    .add(start)
                    .cast::<u64>()
                    .add(index)
                    .write_volatile(word)
            };
        }
    }
}
