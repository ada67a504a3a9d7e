// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of kbase: regions that are no objects yet, and unread events.
//!
//! An app may hold nearly all addresses while it asks for memory, to steer the driver. Nothing is mapped or kept on
//! the heap then: regions become objects when the trace needs them.

use std::collections::VecDeque;

use mali_uapi::kbase::request::{Event, flags};
use mali_uapi::panfrost::request as panfrost;

use crate::object::Object;

/// Regions kept without asking for memory.
const ROOM: usize = 4096;
const PAGE: u64 = gpureplay_trace::PAGE_SIZE as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// GPU address, or the cookie to map.
    pub(crate) at: u64,
    pub(crate) pages: u64,
    /// `BASE_MEM_*`
    pub(crate) flags: u64,
    /// Fewer pages than addresses, or some may go.
    pub(crate) grows: bool,
}

impl Region {
    pub(crate) fn object(&self, handle: u32) -> Object {
        let mut of = 0;
        if self.flags & flags::GPU_EXECUTE == 0 {
            of |= panfrost::NO_EXECUTE;
        }
        if self.flags & flags::CPU_CACHED != 0 {
            of |= panfrost::CACHED_MAPPING;
        }
        let mut object = Object::new(handle, of, self.at, self.pages.saturating_mul(PAGE));
        object.read_only = self.flags & flags::GPU_WRITE == 0;
        object.mapped = true;
        object.pages = self.grows.then_some(0);
        object
    }

    fn overlaps(&self, va: u64, size: u64) -> bool {
        let end = self.at.saturating_add(self.pages.saturating_mul(PAGE));
        self.at < va.saturating_add(size) && va < end
    }
}

pub(crate) struct Kbase {
    cookies: Vec<Region>,
    new: VecDeque<Region>,
    next: u32,
    /// Not told to the app yet.
    pub(crate) events: VecDeque<Event>,
    /// Calls are passed on as they come.
    pub(crate) refused: bool,
}

impl Kbase {
    pub(crate) fn new() -> Self {
        Self {
            cookies: Vec::with_capacity(ROOM),
            new: VecDeque::with_capacity(ROOM),
            next: 0,
            events: VecDeque::with_capacity(ROOM),
            refused: false,
        }
    }

    pub(crate) fn made(&mut self, region: Region) {
        let is_cookie = mali_uapi::kbase::request::COOKIES.contains(&region.at);
        // A cookie stands for another region once the first has its address.
        self.cookies.retain(|known| known.at != region.at);
        match is_cookie {
            true => self.cookies.push(region),
            false => self.new.push_back(region),
        }
    }

    pub(crate) fn placed(&mut self, cookie: u64, va: u64) {
        if let Some(index) = self.cookies.iter().position(|it| it.at == cookie) {
            let region = self.cookies.swap_remove(index);
            self.new.push_back(Region { at: va, ..region });
        }
    }

    pub(crate) fn vacated(&mut self, va: u64, size: u64) {
        self.cookies.retain(|region| region.at != va);
        self.new.retain(|region| !region.overlaps(va, size));
    }

    pub(crate) fn has(&self, va: u64, size: u64) -> bool {
        self.new.iter().any(|region| region.overlaps(va, size))
    }

    pub(crate) fn find(&mut self, va: u64) -> Option<&mut Region> {
        self.new.iter_mut().find(|region| region.at == va)
    }

    /// The next region to become an object, with its handle.
    pub(crate) fn settle(&mut self) -> Option<(Region, u32)> {
        let region = self.new.pop_front()?;
        self.next = self.next.wrapping_add(1);
        Some((region, self.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(at: u64, pages: u64) -> Region {
        Region {
            at,
            pages,
            flags: 0xf,
            grows: false,
        }
    }

    #[test]
    fn a_cookie_is_a_region_when_it_is_mapped() {
        let mut kbase = Kbase::new();
        kbase.made(region(0x4_1000, 2));
        kbase.made(region(0x4_2000, 1));
        assert_eq!(kbase.settle(), None);
        kbase.placed(0x4_1000, 0x7f00_0000);
        kbase.placed(0x4_7000, 0x1000);
        assert!(kbase.has(0x7f00_1fff, 1) && !kbase.has(0x7f00_2000, 1));
        assert_eq!(kbase.settle(), Some((region(0x7f00_0000, 2), 1)));
        assert_eq!(kbase.settle(), None);
        kbase.made(region(0x4_2000, 5));
        kbase.vacated(0x4_2000, 1);
        kbase.placed(0x4_2000, 0x9000_0000);
        assert_eq!(kbase.settle(), None);
    }

    #[test]
    fn what_is_unmapped_never_becomes_an_object() {
        let mut kbase = Kbase::new();
        // It has its own address at once, other than the processor's.
        kbase.made(region(0x8_0000, 4));
        kbase.made(region(0x9_0000, 1));
        kbase.vacated(0x8_3000, 0x1000);
        assert_eq!(kbase.settle(), Some((region(0x9_0000, 1), 1)));
        assert_eq!(kbase.settle(), None);
    }
}
