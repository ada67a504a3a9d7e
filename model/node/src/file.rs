// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open file: handles, address space.

use std::collections::BTreeMap;
use std::sync::Arc;

use mali_model::driven::{BLOCK_BYTES, PAGE_BYTES};

use crate::errno::{Errno, Result};
use crate::machine::Mappings;
use crate::object::Object;
use crate::ranges::Ranges;
use crate::sync::SyncObject;
use crate::vm::Spaces;

/// As panfrost gives them.
const ADDRESSES: (u64, u64) = (32 << 20, 1 << 32);
/// Per kind; the app's memory is bounded by its descriptors.
const HANDLES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) object: Arc<Object>,
    /// 0: the app chooses it.
    pub(crate) va: u64,
    /// Its only address space; 0: any.
    pub(crate) exclusive: u32,
}

#[derive(Debug)]
pub(crate) struct File {
    /// Never used again.
    number: u64,
    changes: u64,
    objects: BTreeMap<u32, Held>,
    syncs: BTreeMap<u32, Arc<SyncObject>>,
    addresses: Ranges,
    mappings: Option<Arc<Mappings>>,
    pub(crate) spaces: Spaces,
}

impl File {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            changes: 0,
            objects: BTreeMap::new(),
            syncs: BTreeMap::new(),
            addresses: Ranges::new(ADDRESSES.0 / PAGE_BYTES, ADDRESSES.1 / PAGE_BYTES),
            mappings: None,
            spaces: Spaces::default(),
        }
    }

    pub(crate) fn add_plain(&mut self, object: Arc<Object>, exclusive: u32) -> Result<u32> {
        if let Some((handle, _)) = self.known(&object) {
            return Ok(handle);
        }
        let handle = vacant(&self.objects)?;
        let va = 0;
        self.objects.insert(
            handle,
            Held {
                object,
                va,
                exclusive,
            },
        );
        Ok(handle)
    }

    fn known(&self, object: &Arc<Object>) -> Option<(u32, u64)> {
        let mut objects = self.objects.iter();
        let known = objects.find(|(_, held)| Arc::ptr_eq(&held.object, object));
        known.map(|(handle, held)| (*handle, held.va))
    }

    pub(crate) fn add(&mut self, object: Arc<Object>) -> Result<(u32, u64)> {
        if let Some(known) = self.known(&object) {
            return Ok(known);
        }
        let pages = object.size / PAGE_BYTES;
        // As `panfrost_gem_open`: code does not cross 16 MiB.
        let align = match object.executable {
            true => pages,
            false if object.size >= BLOCK_BYTES => BLOCK_BYTES / PAGE_BYTES,
            false => 1,
        };
        let executable = object.executable;
        let place = self.addresses.take(pages, align, |start, end| {
            if executable {
                code(start, end)
            } else {
                (start, end)
            }
        });
        let page = place.ok_or(Errno::NO_MEMORY)?;
        let va = page * PAGE_BYTES;
        match vacant(&self.objects) {
            Ok(handle) => {
                self.objects.insert(
                    handle,
                    Held {
                        object,
                        va,
                        exclusive: 0,
                    },
                );
                self.changed();
                Ok((handle, va))
            }
            Err(error) => {
                self.addresses.give_back(page);
                Err(error)
            }
        }
    }

    pub(crate) fn remove(&mut self, handle: u32) -> Result<Arc<Object>> {
        let held = self.objects.remove(&handle).ok_or(Errno::INVALID)?;
        self.addresses.give_back(held.va / PAGE_BYTES);
        self.changed();
        Ok(held.object)
    }

    pub(crate) fn object(&self, handle: u32) -> Result<&Held> {
        self.objects.get(&handle).ok_or(Errno::NO_ENTRY)
    }

    pub(crate) fn at_offset(&self, offset: u64) -> Option<(&Arc<Object>, u64)> {
        let objects = self.objects.values().map(|held| &held.object);
        let within = |object: &Arc<Object>| {
            offset
                .checked_sub(object.address)
                .filter(|delta| *delta < object.size)
        };
        objects
            .filter(|object| !object.heap)
            .find_map(|object| Some((object, within(object)?)))
    }

    /// Equal numbers, equal mappings.
    pub(crate) fn mappings(&mut self) -> (Arc<Mappings>, (u64, u64)) {
        let all = || {
            let objects = self.objects.values();
            Arc::new(objects.map(|held| (held.va, held.object.clone())).collect())
        };
        let mappings = match &self.mappings {
            Some(mappings) => mappings.clone(),
            None => all(),
        };
        self.mappings = Some(mappings.clone());
        (mappings, (self.number, self.changes))
    }

    pub(crate) fn add_sync(&mut self, sync: Arc<SyncObject>) -> Result<u32> {
        let handle = vacant(&self.syncs)?;
        self.syncs.insert(handle, sync);
        Ok(handle)
    }

    pub(crate) fn remove_sync(&mut self, handle: u32) -> Result<()> {
        self.syncs.remove(&handle).map(drop).ok_or(Errno::INVALID)
    }

    pub(crate) fn sync(&self, handle: u32) -> Result<&Arc<SyncObject>> {
        self.syncs.get(&handle).ok_or(Errno::NO_ENTRY)
    }

    fn changed(&mut self) {
        self.changes += 1;
        self.mappings = None;
    }
}

fn vacant<T>(handles: &BTreeMap<u32, T>) -> Result<u32> {
    if handles.len() >= HANDLES {
        return Err(Errno::NO_MEMORY);
    }
    match handles.last_key_value() {
        Some((last, _)) if *last as usize == handles.len() => Ok(last + 1),
        _ => {
            let free = (1..)
                .zip(handles.keys())
                .find(|(number, handle)| number != *handle);
            Ok(free.map_or(1, |(number, _)| number))
        }
    }
}

/// Code may not begin or end at a boundary of 4 GiB (`panfrost_drm_mm_color_adjust`).
fn code(start: u64, end: u64) -> (u64, u64) {
    const SEGMENT: u64 = (1 << 32) / PAGE_BYTES;
    const LAST: u64 = (16 << 20) / PAGE_BYTES;
    let inside = |page: u64| page.is_multiple_of(SEGMENT);
    let mut start = if inside(start) { start + 1 } else { start };
    let end = if inside(end) { end - 1 } else { end };
    let next = start.next_multiple_of(SEGMENT);
    if next - start <= LAST {
        start = next + 1;
    }
    (start, end.min(next.max(start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Memory;
    use mali_uapi::panfrost::request::NO_EXECUTE;

    #[test]
    fn handles_are_the_lowest_that_are_free() {
        let mut handles = BTreeMap::new();
        for expected in 1..=3 {
            let handle = vacant(&handles).unwrap();
            assert_eq!(handle, expected);
            handles.insert(handle, ());
        }
        handles.remove(&2);
        assert_eq!(vacant(&handles), Ok(2));
        handles.insert(2, ());
        assert_eq!(vacant(&handles), Ok(4));
        handles.remove(&1);
        assert_eq!(vacant(&handles), Ok(1));
    }

    #[test]
    fn addresses_are_the_drivers() {
        let memory = Memory::new().unwrap();
        let mut file = File::new(0);
        let mut add = |size, flags| file.add(memory.create(size, flags).unwrap()).unwrap().1;
        assert_eq!(add(4096, NO_EXECUTE), 0x200_0000);
        assert_eq!(add(3 << 20, NO_EXECUTE), 0x220_0000);
        // Aligned code of 64 KiB; then data in the smallest hole.
        assert_eq!(add(0x1_0000, 0), 0x201_0000);
        assert_eq!(add(0x1000, NO_EXECUTE), 0x200_1000);
    }

    #[test]
    fn code_stays_off_the_end_of_the_space() {
        let pages = |bytes: u64| bytes / PAGE_BYTES;
        let end = pages(1 << 32);
        assert_eq!(code(pages(32 << 20), end), (pages(32 << 20), end - 1));
        let (start, last) = code(end - 100, end);
        assert!(start >= last);
    }

    #[test]
    fn an_object_has_one_handle_in_a_file() {
        let memory = Memory::new().unwrap();
        let mut file = File::new(0);
        let object = memory.create(4096, NO_EXECUTE).unwrap();
        let first = file.add(object.clone()).unwrap();
        assert_eq!(file.add(object.clone()).unwrap(), first);
        let (mappings, before) = file.mappings();
        assert_eq!(mappings.len(), 1);
        assert!(
            file.at_offset(object.address + 5)
                .is_some_and(|(_, delta)| delta == 5)
        );
        assert!(file.at_offset(object.address + 4096).is_none());
        file.remove(first.0).unwrap();
        assert_eq!(file.remove(first.0).err(), Some(Errno::INVALID));
        let (mappings, after) = file.mappings();
        assert!(mappings.is_empty() && before != after);
    }
}
