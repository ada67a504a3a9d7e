// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffer objects: memory files at bus addresses.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};

use gpureplay_memory::Mapped;
use mali_model::driven::{self, BLOCK_BYTES, PAGE_BYTES};

use crate::descriptor::{self, Identity};
use crate::errno::{Errno, Result, valid};
use crate::lock::locked;
use crate::ranges::Ranges;
use mali_uapi::panfrost::request as uapi;

/// As far as all GPUs reach; also offsets for `mmap`.
const ADDRESSES: (u64, u64) = (1 << 32, 1 << 40);
const NAME: &str = "gpureplay-object";

#[derive(Debug)]
pub(crate) struct Memory {
    bus: Arc<Mapped>,
    /// In pages.
    free: Mutex<Ranges>,
}

#[derive(Debug)]
pub(crate) struct Object {
    memory: Arc<Memory>,
    file: OwnedFd,
    pub(crate) identity: Identity,
    pub(crate) address: u64,
    /// A multiple of the page size.
    pub(crate) size: u64,
    pub(crate) executable: bool,
    /// The processor cannot map it.
    pub(crate) heap: bool,
}

impl Memory {
    pub(crate) fn new() -> Result<Arc<Self>> {
        let bus = Arc::new(Mapped::new());
        let file = descriptor::memory_file(c"gpureplay-tables", driven::BYTES)?;
        let added = bus.add(driven::BASE, driven::BYTES, &file, 0, true);
        added.map_err(|_| Errno::NO_MEMORY)?;
        let free = Ranges::new(ADDRESSES.0 / PAGE_BYTES, ADDRESSES.1 / PAGE_BYTES);
        Ok(Arc::new(Self {
            bus,
            free: Mutex::new(free),
        }))
    }

    pub(crate) fn bus(&self) -> &Arc<Mapped> {
        &self.bus
    }

    /// Heaps have full size: untouched pages cost nothing.
    pub(crate) fn create(self: &Arc<Self>, size: u64, flags: u32) -> Result<Arc<Object>> {
        let heap = flags & uapi::HEAP != 0;
        let unit = if heap { BLOCK_BYTES } else { PAGE_BYTES };
        let size = size.next_multiple_of(unit);
        let file = descriptor::memory_file(c"gpureplay-object", size)?;
        self.object(file, size, flags & uapi::NO_EXECUTE == 0, heap)
    }

    /// For panthor: mappings say what is executable.
    pub(crate) fn create_plain(self: &Arc<Self>, size: u64, mappable: bool) -> Result<Arc<Object>> {
        let size = size.checked_next_multiple_of(PAGE_BYTES);
        let size = size.ok_or(Errno::NO_MEMORY)?;
        let file = descriptor::memory_file(c"gpureplay-object", size)?;
        self.object(file, size, true, !mappable)
    }

    pub(crate) fn adopt(self: &Arc<Self>, fd: RawFd) -> Result<Arc<Object>> {
        let size = descriptor::size(fd).unwrap_or(0);
        valid(descriptor::is_sealed(fd, NAME) && size != 0 && size.is_multiple_of(PAGE_BYTES))?;
        // As the kernel maps imports.
        self.object(descriptor::from_app(fd)?, size, false, false)
    }

    fn object(
        self: &Arc<Self>,
        file: OwnedFd,
        size: u64,
        executable: bool,
        heap: bool,
    ) -> Result<Arc<Object>> {
        let identity = descriptor::identity(file.as_raw_fd()).ok_or(Errno::NO_MEMORY)?;
        let align = if size >= BLOCK_BYTES {
            BLOCK_BYTES
        } else {
            PAGE_BYTES
        };
        let place = {
            let mut free = locked(&self.free);
            free.take(size / PAGE_BYTES, align / PAGE_BYTES, |start, end| {
                (start, end)
            })
        };
        let address = place.ok_or(Errno::NO_MEMORY)? * PAGE_BYTES;
        // Before mapping, so that the address always comes back.
        let object = Object {
            memory: self.clone(),
            file,
            identity,
            address,
            size,
            executable,
            heap,
        };
        let added = self.bus.add(address, size, &object.file, 0, true);
        added.map_err(|_| Errno::NO_MEMORY)?;
        Ok(Arc::new(object))
    }
}

impl Object {
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // If mapping failed, there is nothing to remove.
        let _ = self.memory.bus.remove(self.address, self.size);
        locked(&self.memory.free).give_back(self.address / PAGE_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_memory::Bus;

    #[test]
    fn memory_comes_back_zeroed() {
        let memory = Memory::new().unwrap();
        let first = memory.create(5000, 0).unwrap();
        assert_eq!(
            (first.size, first.executable, first.heap),
            (8192, true, false)
        );
        let address = first.address;
        memory.bus().page(address + 4096).unwrap().store_u8(7, 1);
        drop(first);
        assert!(memory.bus().page(address).is_none());
        let again = memory.create(8192, uapi::NO_EXECUTE).unwrap();
        assert_eq!((again.address, again.executable), (address, false));
        assert_eq!(memory.bus().page(address + 4096).unwrap().load_u8(7), 0);
        let heap = memory.create(1, uapi::HEAP).unwrap();
        assert_eq!((heap.size, heap.address % BLOCK_BYTES), (BLOCK_BYTES, 0));
    }

    #[test]
    fn only_objects_are_adopted() {
        let memory = Memory::new().unwrap();
        let object = memory.create(4096, 0).unwrap();
        memory.bus().page(object.address).unwrap().store_u8(3, 9);
        let fd = descriptor::for_app(object.file(), true).unwrap();
        drop(object);
        let adopted = memory.adopt(fd).unwrap();
        assert_eq!(memory.bus().page(adopted.address).unwrap().load_u8(3), 9);
        let other = descriptor::memory_file(c"other", 4096).unwrap();
        for bad in [-1, 0, 1 << 30, other.as_raw_fd()] {
            assert_eq!(memory.adopt(bad).err(), Some(Errno::INVALID), "{bad}");
        }
    }
}
