// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of shared memory.

use std::any::Any;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::words;

/// In bytes.
pub const PAGE_SIZE: usize = 4096;

const MASK: usize = PAGE_SIZE - 1;

/// 4096 bytes that others may access at the same time.
///
/// Values are little-endian. Accesses at multiples of their size are atomic, others are made of bytes. Offsets
/// wrap: callers split accesses at the page's end.
#[derive(Clone)]
pub struct Page<'a> {
    base: NonNull<u8>,
    /// Keeps a removed mapping alive.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
    _memory: PhantomData<&'a [AtomicU8]>,
}

// SAFETY: memory is accessed through atomics only, and its owner is Send and Sync.
unsafe impl Send for Page<'_> {}
// SAFETY: as above.
unsafe impl Sync for Page<'_> {}

impl std::fmt::Debug for Page<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("base", &self.base).finish()
    }
}

macro_rules! word_access {
    ($load:ident, $store:ident, $load_at:ident, $store_at:ident, $int:ty, $atomic:ty, $bytes:literal) => {
        #[doc = concat!("Reads ", $bytes, " bytes at `offset` rounded down to a multiple of that.")]
        #[inline(always)]
        pub fn $load_at(&self, offset: usize) -> $int {
            let at = offset & MASK & !(size_of::<$int>() - 1);
            // SAFETY: `at` lies in the page and is a multiple of the size; the page is valid memory for the lifetime of
            // `self`.
            let cell = unsafe { &*self.base.as_ptr().add(at).cast::<$atomic>() };
            <$int>::from_le(cell.load(Relaxed))
        }

        #[doc = concat!("Writes ", $bytes, " bytes at `offset` rounded down to a multiple of that.")]
        #[inline(always)]
        pub fn $store_at(&self, offset: usize, value: $int) {
            let at = offset & MASK & !(size_of::<$int>() - 1);
            // SAFETY: as above.
            let cell = unsafe { &*self.base.as_ptr().add(at).cast::<$atomic>() };
            cell.store(value.to_le(), Relaxed);
        }

        #[doc = concat!("Reads ", $bytes, " bytes at `offset`.")]
        #[inline(always)]
        pub fn $load(&self, offset: usize) -> $int {
            const SIZE: usize = size_of::<$int>();
            if offset.is_multiple_of(SIZE) {
                self.$load_at(offset)
            } else {
                let mut bytes = [0; SIZE];
                for (i, byte) in bytes.iter_mut().enumerate() {
                    *byte = self.load_u8(offset.wrapping_add(i));
                }
                <$int>::from_le_bytes(bytes)
            }
        }

        #[doc = concat!("Writes ", $bytes, " bytes at `offset`.")]
        #[inline(always)]
        pub fn $store(&self, offset: usize, value: $int) {
            const SIZE: usize = size_of::<$int>();
            if offset.is_multiple_of(SIZE) {
                self.$store_at(offset, value);
            } else {
                for (i, byte) in value.to_le_bytes().into_iter().enumerate() {
                    self.store_u8(offset.wrapping_add(i), byte);
                }
            }
        }
    };
}

macro_rules! atomic_update {
    ($update:ident, $exchange:ident, $int:ty, $atomic:ty) => {
        /// Atomically replaces the word at `offset` (rounded down to its size), returns the old one. `new` may run
        /// more than once.
        #[inline]
        pub fn $update(&self, offset: usize, mut new: impl FnMut($int) -> $int) -> $int {
            let at = offset & MASK & !(size_of::<$int>() - 1);
            // SAFETY: `at` lies in the page and is a multiple of the size.
            let cell = unsafe { &*self.base.as_ptr().add(at).cast::<$atomic>() };
            let mut old = cell.load(Relaxed);
            loop {
                let next = new(<$int>::from_le(old)).to_le();
                match cell.compare_exchange_weak(old, next, Relaxed, Relaxed) {
                    Ok(_) => return <$int>::from_le(old),
                    Err(now) => old = now,
                }
            }
        }

        /// Atomically writes `new` at `offset` (rounded down to its size) over `expected`; returns the old value.
        #[inline]
        pub fn $exchange(&self, offset: usize, expected: $int, new: $int) -> $int {
            let at = offset & MASK & !(size_of::<$int>() - 1);
            // SAFETY: as above.
            let cell = unsafe { &*self.base.as_ptr().add(at).cast::<$atomic>() };
            let result = cell.compare_exchange(expected.to_le(), new.to_le(), Relaxed, Relaxed);
            <$int>::from_le(result.unwrap_or_else(|now| now))
        }
    };
}

#[inline(always)]
fn words_at(offset: usize, count: usize) -> (usize, usize) {
    let offset = offset & MASK & !3;
    (offset, count.min((PAGE_SIZE - offset) / 4))
}

impl<'a> Page<'a> {
    /// # Safety
    ///
    /// `base` is aligned to 4096, and 4096 bytes stay readable and writable for `'a`, or while `owner` lives. No
    /// plain (non-atomic) reference to them exists meanwhile.
    pub(crate) unsafe fn new(
        base: NonNull<u8>,
        owner: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Page<'a> {
        debug_assert_eq!(base.as_ptr() as usize & MASK, 0);
        Page {
            base,
            _owner: owner,
            _memory: PhantomData,
        }
    }

    /// Address in this process, for code with its own rules of access.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Reads one byte.
    #[inline(always)]
    pub fn load_u8(&self, offset: usize) -> u8 {
        // SAFETY: the masked offset lies in the page.
        unsafe { &*self.base.as_ptr().add(offset & MASK).cast::<AtomicU8>() }.load(Relaxed)
    }

    /// Writes one byte.
    #[inline(always)]
    pub fn store_u8(&self, offset: usize, value: u8) {
        // SAFETY: as above.
        unsafe { &*self.base.as_ptr().add(offset & MASK).cast::<AtomicU8>() }.store(value, Relaxed);
    }

    word_access!(
        load_u16,
        store_u16,
        load_aligned_u16,
        store_aligned_u16,
        u16,
        AtomicU16,
        "2"
    );
    word_access!(
        load_u32,
        store_u32,
        load_aligned_u32,
        store_aligned_u32,
        u32,
        AtomicU32,
        "4"
    );
    word_access!(
        load_u64,
        store_u64,
        load_aligned_u64,
        store_aligned_u64,
        u64,
        AtomicU64,
        "8"
    );
    atomic_update!(fetch_update_u32, compare_exchange_u32, u32, AtomicU32);
    atomic_update!(fetch_update_u64, compare_exchange_u64, u64, AtomicU64);

    /// Reads 16 bytes as two accesses of 8.
    #[inline(always)]
    pub fn load_u128(&self, offset: usize) -> u128 {
        u128::from(self.load_u64(offset)) | u128::from(self.load_u64(offset.wrapping_add(8))) << 64
    }

    /// Reads words from `offset` (rounded down to a multiple of 4), each in one access; returns how many the page
    /// had.
    #[inline(always)]
    pub fn load_words(&self, offset: usize, to: &mut [u32]) -> usize {
        let (offset, count) = words_at(offset, to.len());
        let to = &mut to[..count];
        // SAFETY: from `offset` on the page has `count` words, valid for the lifetime of `self`, to which nobody has a
        // plain reference.
        unsafe { words::load(self.base.as_ptr().add(offset), to) };
        count
    }

    /// Writes words as `load_words` reads them; returns how many fit.
    #[inline(always)]
    pub fn store_words(&self, offset: usize, from: &[u32]) -> usize {
        let (offset, count) = words_at(offset, from.len());
        let from = &from[..count];
        // SAFETY: as for the loads.
        unsafe { words::store(from, self.base.as_ptr().add(offset)) };
        count
    }

    /// Returns how many bytes the page had.
    pub fn copy_to_slice(&self, offset: usize, to: &mut [u8]) -> usize {
        let count = to.len().min(PAGE_SIZE.saturating_sub(offset));
        let mut at = offset;
        let (head, rest) = to[..count].split_at_mut(count.min(offset.next_multiple_of(8) - offset));
        for byte in head {
            *byte = self.load_u8(at);
            at += 1;
        }
        let mut words = rest.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.load_aligned_u64(at).to_le_bytes());
            at += 8;
        }
        for byte in words.into_remainder() {
            *byte = self.load_u8(at);
            at += 1;
        }
        count
    }

    /// Copies bytes in; returns how many fit.
    pub fn copy_from_slice(&self, offset: usize, from: &[u8]) -> usize {
        let count = from.len().min(PAGE_SIZE.saturating_sub(offset));
        let mut at = offset;
        let (head, rest) = from[..count].split_at(count.min(offset.next_multiple_of(8) - offset));
        for &byte in head {
            self.store_u8(at, byte);
            at += 1;
        }
        let words = rest.chunks_exact(8);
        for (tail, &byte) in (at + words.len() * 8..).zip(words.remainder()) {
            self.store_u8(tail, byte);
        }
        for word in words {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            self.store_aligned_u64(at, u64::from_le_bytes(bytes));
            at += 8;
        }
        count
    }

    /// Eight bytes at a time.
    pub fn fill_u64(&self, value: u64) {
        for at in (0..PAGE_SIZE).step_by(8) {
            self.store_u64(at, value);
        }
    }
}
