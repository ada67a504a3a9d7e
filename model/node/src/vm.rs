// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a panthor file has besides objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mali_model::Sequencer;
use mali_model::driven::{Map, PAGE_BYTES, Rights, VIRTUAL_BITS};

use crate::errno::{Errno, Result, valid};
use crate::object::Object;

/// Per file, as the driver's pools have it.
const MOST: u32 = 128;
const REGIONS: usize = 1 << 16;
/// For the driver's own mappings, at least.
const KERNEL_RANGE: u64 = 256 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) object: Arc<Object>,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) rights: Rights,
}

/// By address; none overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions(BTreeMap<u64, Region>);

impl Regions {
    pub(crate) fn maps(&self) -> impl Iterator<Item = Map> {
        self.0.iter().map(|(va, region)| Map {
            va: *va,
            address: region.object.address + region.offset,
            size: region.size,
            rights: region.rights,
        })
    }

    fn clear(&mut self, va: u64, size: u64) {
        let end = va + size;
        let before = self.0.range(..end).rev();
        let touched = before.take_while(|(start, region)| **start + region.size > va);
        let touched: Vec<u64> = touched.map(|(start, _)| *start).collect();
        for start in touched {
            let Some(region) = self.0.remove(&start) else {
                continue;
            };
            let region_end = start + region.size;
            if start < va {
                let size = va - start;
                let left = Region {
                    size,
                    ..region.clone()
                };
                self.0.insert(start, left);
            }
            if region_end > end {
                let right = Region {
                    offset: region.offset + (end - start),
                    size: region_end - end,
                    ..region
                };
                self.0.insert(end, right);
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Vm {
    /// Never used again.
    number: u64,
    changes: u64,
    user_range: u64,
    regions: Arc<Regions>,
    next_kernel: u64,
    pub(crate) unusable: bool,
}

impl Vm {
    fn check(&self, va: u64, size: u64) -> Result<()> {
        let end = va.checked_add(size);
        let inside = end.is_some_and(|end| end <= self.user_range);
        valid(inside && size > 0 && (va | size).is_multiple_of(PAGE_BYTES))
    }

    pub(crate) fn map(&mut self, va: u64, region: Region) -> Result<()> {
        self.check(va, region.size)?;
        let end = region.offset.checked_add(region.size);
        let inside = end.is_some_and(|end| end <= region.object.size);
        valid(inside && region.offset.is_multiple_of(PAGE_BYTES))?;
        let regions = Arc::make_mut(&mut self.regions);
        if regions.0.len() >= REGIONS {
            return Err(Errno::NO_MEMORY);
        }
        regions.clear(va, region.size);
        regions.0.insert(va, region);
        self.changes += 1;
        Ok(())
    }

    pub(crate) fn unmap(&mut self, va: u64, size: u64) -> Result<()> {
        self.check(va, size)?;
        Arc::make_mut(&mut self.regions).clear(va, size);
        self.changes += 1;
        Ok(())
    }

    /// Equal numbers, equal regions.
    pub(crate) fn regions(&self) -> (Arc<Regions>, (u64, u64)) {
        (self.regions.clone(), (self.number, self.changes))
    }
}

pub(crate) type Queue = Arc<Mutex<Sequencer>>;

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) vm: u32,
    /// The space's number; its handle may be used again.
    pub(crate) space: u64,
    pub(crate) queues: Vec<Queue>,
    /// After faults, as bits.
    pub(crate) fatal_queues: u32,
}

/// Numbers start at 1.
#[derive(Debug)]
pub(crate) struct Pool<T>(BTreeMap<u32, T>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Pool<T> {
    pub(crate) fn add(&mut self, thing: T) -> Result<u32> {
        let free = (1..=MOST).find(|number| !self.0.contains_key(number));
        let number = free.ok_or(Errno::NO_MEMORY)?;
        self.0.insert(number, thing);
        Ok(number)
    }

    pub(crate) fn get(&mut self, number: u32) -> Result<&mut T> {
        self.0.get_mut(&number).ok_or(Errno::INVALID)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Result<T> {
        self.0.remove(&number).ok_or(Errno::INVALID)
    }

    fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|_, thing| keep(thing));
    }
}

/// Nothing is mapped: no stream here uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heap {
    vm: u32,
    pub(crate) context: u64,
    pub(crate) first_chunk: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Spaces {
    pub(crate) vms: Pool<Vm>,
    pub(crate) groups: Pool<Group>,
    pub(crate) heaps: Pool<Heap>,
}

impl Spaces {
    /// `user_range` low bytes are the app's; 0: the driver chooses. `number` is new.
    pub(crate) fn create(&mut self, user_range: u64, number: u64) -> Result<(u32, u64)> {
        let whole = 1 << VIRTUAL_BITS;
        let user_range = match user_range {
            0 => whole / 2,
            range if range <= whole - KERNEL_RANGE => range,
            _ => return Err(Errno::INVALID),
        };
        let id = self.vms.add(Vm {
            number,
            changes: 0,
            user_range,
            regions: Arc::default(),
            next_kernel: user_range.next_multiple_of(PAGE_BYTES),
            unusable: false,
        })?;
        Ok((id, user_range))
    }

    /// Groups keep its number and cannot run.
    pub(crate) fn destroy(&mut self, vm: u32) -> Result<()> {
        self.vms.remove(vm)?;
        self.heaps.retain(|heap| heap.vm != vm);
        Ok(())
    }

    pub(crate) fn heap(&mut self, vm: u32, bytes: u64) -> Result<(u32, Heap)> {
        let space = self.vms.get(vm)?;
        let context = space.next_kernel;
        let first_chunk = context + PAGE_BYTES;
        let end = first_chunk.checked_add(bytes);
        let end = end.filter(|end| *end <= 1 << VIRTUAL_BITS);
        space.next_kernel = end.ok_or(Errno::NO_MEMORY)?;
        let heap = Heap {
            vm,
            context,
            first_chunk,
        };
        Ok((self.heaps.add(heap)?, heap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Memory;

    const DATA: Rights = Rights {
        write: true,
        execute: false,
    };

    #[test]
    fn regions_are_cut_and_replaced() {
        let memory = Memory::new().unwrap();
        let objects: Vec<_> = (0..4)
            .map(|_| memory.create(16 * 4096, 0).unwrap())
            .collect();
        let mut spaces = Spaces::default();
        let (id, _) = spaces.create(64 * 4096, 1).unwrap();
        let vm = spaces.vms.get(id).unwrap();
        let mut pages = [None; 64];
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..3000 {
            let size = 1 + random(12);
            let at = random(64 - size + 1);
            let range = at as usize..(at + size) as usize;
            if random(3) == 0 {
                vm.unmap(at * 4096, size * 4096).unwrap();
                pages[range].fill(None);
                continue;
            }
            let (object, offset) = (random(4) as usize, random(16 - size + 1));
            let region = Region {
                object: objects[object].clone(),
                offset: offset * 4096,
                size: size * 4096,
                rights: DATA,
            };
            vm.map(at * 4096, region).unwrap();
            for (page, offset) in pages[range].iter_mut().zip(offset..) {
                *page = Some((object, offset));
            }
            let mut found = [None; 64];
            for (va, region) in &vm.regions().0.0 {
                for index in 0..region.size / 4096 {
                    let object = objects
                        .iter()
                        .position(|it| Arc::ptr_eq(it, &region.object));
                    let place = &mut found[(va / 4096 + index) as usize];
                    assert!(place.is_none(), "two regions at one address");
                    *place = object.map(|object| (object, region.offset / 4096 + index));
                }
            }
            assert_eq!(found, pages);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let memory = Memory::new().unwrap();
        let object = memory.create(2 * 4096, 0).unwrap();
        let mut spaces = Spaces::default();
        assert_eq!(spaces.create(1 << 48, 1).err(), Some(Errno::INVALID));
        let (id, range) = spaces.create(0, 1).unwrap();
        assert_eq!((id, range), (1, 1 << 47));
        let vm = spaces.vms.get(id).unwrap();
        let region = |offset, size| Region {
            object: object.clone(),
            offset,
            size,
            rights: DATA,
        };
        for (va, offset, size) in [
            (1, 0, 4096),
            (4096, 0, 0),
            (4096, 0, 100),
            (4096, 100, 4096),
            (4096, 4096, 8192),
            (4096, u64::MAX - 4095, 4096),
            (1 << 47, 0, 4096),
            (u64::MAX - 4095, 0, 4096),
        ] {
            let mapped = vm.map(va, region(offset, size));
            assert_eq!(mapped, Err(Errno::INVALID), "{va:#x} {offset:#x} {size}");
        }
        assert_eq!(vm.map((1 << 47) - 8192, region(0, 8192)), Ok(()));
        assert_eq!(spaces.vms.get(2).err(), Some(Errno::INVALID));
        let (heap, first) = spaces.heap(id, 1 << 21).unwrap();
        let (_, second) = spaces.heap(id, 1 << 21).unwrap();
        assert!(first.context >= 1 << 47 && second.context >= first.first_chunk + (1 << 21));
        spaces.destroy(id).unwrap();
        assert_eq!(spaces.heaps.remove(heap).err(), Some(Errno::INVALID));
    }
}
