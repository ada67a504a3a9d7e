// SPDX-License-Identifier: MIT OR Apache-2.0
//! The render node.

mod objects;
mod panthor;
mod submit;
mod syncs;
mod time_lines;

use std::collections::HashMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::descriptor::{self, Identity};
use crate::errno::{Errno, Result, valid};
use crate::file::File;
use crate::lock::locked;
use crate::machine::{self, Machine, StreamMachine};
use crate::object::{Memory, Object};
use crate::sync::{Fence, SyncObject};
use crate::user;
use mali_model::Product;
use mali_uapi::panfrost::request::{self as uapi, Request, number};
use mali_uapi::panthor::FLUSH_ID_OFFSET;

const FLUSH_ID_BYTES: u64 = 4096;
/// Request numbers that panfrost does not have.
const SYNCOBJ_TIMELINES: std::ops::RangeInclusive<u8> = 0xca..=0xcd;

struct Driver {
    version: [i32; 3],
    name: &'static str,
    date: &'static str,
    text: &'static str,
}

/// Version 1.3 has timestamps and the cycle counter.
const PANFROST: Driver = Driver {
    version: [1, 3, 0],
    name: "panfrost",
    date: "20180908",
    text: "panfrost DRM, on the GPU model",
};

/// Version 1.2 tells timestamps and priorities.
const PANTHOR: Driver = Driver {
    version: [1, 2, 0],
    name: "panthor",
    date: "20230801",
    text: "panthor DRM, on the GPU model",
};

/// Never locked while holding the state.
enum Model {
    Panfrost(Box<Mutex<Machine>>),
    Panthor {
        machine: Mutex<StreamMachine>,
        flush_id: Arc<OwnedFd>,
    },
}

impl Model {
    fn new(product: Product, memory: Arc<Memory>) -> Result<Self> {
        let gpu = match product {
            Product::Chains(profile) => {
                let bus = memory.bus().clone();
                let machine = Mutex::new(Machine::new(profile, bus, machine::options()));
                return Ok(Self::Panfrost(Box::new(machine)));
            }
            Product::Streams(gpu) => gpu,
        };
        let flush_id = descriptor::memory_file(c"gpureplay-flush", FLUSH_ID_BYTES)?;
        // Each stream begins with a flush, so the number may stand still.
        let page = std::fs::File::from(flush_id.try_clone().map_err(|_| Errno::NO_MEMORY)?);
        let written = std::os::unix::fs::FileExt::write_all_at(&page, &1u32.to_le_bytes(), 0);
        written.map_err(|_| Errno::NO_MEMORY)?;
        Ok(Self::Panthor {
            machine: Mutex::new(StreamMachine::new(
                gpu,
                memory.bus().clone(),
                machine::options(),
            )),
            flush_id: Arc::new(flush_id),
        })
    }
}

/// A render node whose GPU is the model.
pub struct Node {
    memory: Arc<Memory>,
    model: Model,
    state: Mutex<State>,
    signalled: Condvar,
    /// Sync files of successful and failed work.
    fences: [(OwnedFd, Identity); 2],
}

#[derive(Default)]
struct State {
    files: HashMap<Identity, File>,
    opened: u64,
    syncs: HashMap<Identity, Arc<SyncObject>>,
    exports: HashMap<Identity, Weak<Object>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Node(Identity),
    Fence(Fence),
}

impl Node {
    /// A node with a GPU.
    ///
    /// # Errors
    /// No more memory or files.
    pub fn new(product: Product) -> Result<Self> {
        descriptor::raise_limit();
        let memory = Memory::new()?;
        let fence = || descriptor::mark(c"gpureplay-fence");
        Ok(Self {
            model: Model::new(product, memory.clone())?,
            memory,
            state: Mutex::default(),
            signalled: Condvar::new(),
            fences: [fence()?, fence()?],
        })
    }

    /// A new file with its address space.
    ///
    /// # Errors
    /// No more files.
    pub fn open(&self, close_on_exec: bool) -> Result<RawFd> {
        let (file, identity) = descriptor::mark(c"gpureplay-node")?;
        let fd = descriptor::for_app(&file, close_on_exec)?;
        let mut state = self.state();
        state.opened += 1;
        let opened = File::new(state.opened);
        state.files.insert(identity, opened);
        Ok(fd)
    }

    /// What to forget on closing, for `Node::closed`.
    pub fn closing(&self, fd: RawFd) -> Option<impl FnOnce(&Node) + use<>> {
        let identity = descriptor::identity(fd)?;
        let state = self.state();
        let known = state.files.contains_key(&identity) || state.syncs.contains_key(&identity);
        known.then_some(move |node: &Node| node.closed(identity))
    }

    fn closed(&self, identity: Identity) {
        if descriptor::is_open(identity, None) {
            return;
        }
        let (file, sync) = {
            let mut state = self.state();
            (state.files.remove(&identity), state.syncs.remove(&identity))
        };
        drop((file, sync));
    }

    /// Memory file and offset to map. `None`: not the node's.
    ///
    /// # Errors
    /// Nothing has the offset, or so many bytes.
    pub fn mapped(
        &self,
        fd: RawFd,
        length: usize,
        offset: i64,
    ) -> Option<Result<(MappedFile, i64)>> {
        let identity = descriptor::identity(fd)?;
        let state = self.state();
        let file = state.files.get(&identity)?;
        let find = || {
            let offset = u64::try_from(offset).map_err(|_| Errno::INVALID)?;
            if let Model::Panthor { flush_id, .. } = &self.model
                && offset == FLUSH_ID_OFFSET
            {
                let whole = length as u64 <= FLUSH_ID_BYTES;
                let page = whole.then(|| MappedFile(Mappable::Page(flush_id.clone())));
                return Ok((page.ok_or(Errno::INVALID)?, 0));
            }
            let (object, delta) = file.at_offset(offset).ok_or(Errno::INVALID)?;
            let length = (length as u64)
                .checked_next_multiple_of(4096)
                .ok_or(Errno::INVALID)?;
            valid(length <= object.size - delta)?;
            Ok((
                MappedFile(Mappable::Object(object.clone())),
                i64::try_from(delta).map_err(|_| Errno::INVALID)?,
            ))
        };
        Some(find())
    }

    /// A request; `None`: not the node's descriptor.
    pub fn ioctl(&self, fd: RawFd, request: u32, argument: u64) -> Option<Result<c_int>> {
        let request = Request(request);
        let done = match (request.class(), self.kind(fd)?) {
            (Request::DRM, Kind::Node(file)) => Call {
                node: self,
                file,
                request,
                argument,
            }
            .drm(),
            (Request::SYNC_FILE, Kind::Fence(fence)) => self.sync_file(fence, request, argument),
            _ => Err(Errno(libc::ENOTTY)),
        };
        Some(done)
    }

    fn driver(&self) -> &'static Driver {
        match self.model {
            Model::Panfrost(_) => &PANFROST,
            Model::Panthor { .. } => &PANTHOR,
        }
    }

    fn kind(&self, fd: RawFd) -> Option<Kind> {
        let identity = descriptor::identity(fd)?;
        if let Some(fence) = self.fence(identity) {
            return Some(Kind::Fence(fence));
        }
        let known = self.state().files.contains_key(&identity);
        known.then_some(Kind::Node(identity))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn new_number(&self) -> u64 {
        let mut state = self.state();
        state.opened += 1;
        state.opened
    }
}

/// An object's memory file, alive with this.
pub struct MappedFile(Mappable);

enum Mappable {
    Object(Arc<Object>),
    Page(Arc<OwnedFd>),
}

impl AsRawFd for MappedFile {
    fn as_raw_fd(&self) -> RawFd {
        match &self.0 {
            Mappable::Object(object) => object.file().as_raw_fd(),
            Mappable::Page(file) => file.as_raw_fd(),
        }
    }
}

struct Call<'a> {
    node: &'a Node,
    file: Identity,
    request: Request,
    argument: u64,
}

impl Call<'_> {
    fn drm(&self) -> Result<c_int> {
        match self.request.number() {
            number::VERSION => self.with(|argument| version(self.node.driver(), argument)),
            // A node without a bus has no unique name.
            number::GET_UNIQUE => self.with(|unique: &mut uapi::Unique| {
                unique.length = 0;
                Ok(())
            }),
            number::GET_CAP => self.with(|argument| self.capability(argument)),
            number::GEM_CLOSE => self.with(|argument| self.gem_close(argument)),
            number::PRIME_HANDLE_TO_FD => self.with(|argument| self.export(argument)),
            number::PRIME_FD_TO_HANDLE => self.with(|argument| self.import(argument)),
            number::SYNCOBJ_CREATE => self.with(|argument| self.sync_create(argument)),
            number::SYNCOBJ_DESTROY => self.with(|argument| self.sync_destroy(argument)),
            number::SYNCOBJ_HANDLE_TO_FD => self.with(|argument| self.sync_export(argument)),
            number::SYNCOBJ_FD_TO_HANDLE => self.with(|argument| self.sync_import(argument)),
            number::SYNCOBJ_WAIT => self.with(|argument| self.sync_wait(argument)),
            number::SYNCOBJ_RESET => self.with(|argument| self.sync_set(argument, None)),
            number::SYNCOBJ_SIGNAL => self.with(|argument| self.sync_set(argument, Some(Ok(())))),
            other => match &self.node.model {
                Model::Panfrost(machine) => self.panfrost(machine),
                Model::Panthor { .. } if SYNCOBJ_TIMELINES.contains(&other) => self.time_lines(),
                Model::Panthor { machine, .. } => self.panthor(machine),
            },
        }
    }

    fn panfrost(&self, machine: &Mutex<Machine>) -> Result<c_int> {
        match self.request.number() {
            number::SUBMIT => self.with(|argument| self.submit(machine, argument)),
            number::WAIT_BO => self.with(|argument| self.wait_bo(argument)),
            number::CREATE_BO => self.with(|argument| self.create_bo(argument)),
            number::MMAP_BO => self.with(|argument| self.mmap_bo(argument)),
            number::GET_PARAM => self.with(|argument| get_param(machine, argument)),
            number::GET_BO_OFFSET => self.with(|argument| self.get_bo_offset(argument)),
            number::MADVISE => self.with(|argument| self.madvise(argument)),
            number::PERFCNT_ENABLE | number::PERFCNT_DUMP => Err(Errno(libc::ENOSYS)),
            other if SYNCOBJ_TIMELINES.contains(&other) => Err(Errno(libc::EOPNOTSUPP)),
            _ => Err(Errno::INVALID),
        }
    }

    fn with<T: FromBytes + IntoBytes + Immutable>(
        &self,
        step: impl FnOnce(&mut T) -> Result<()>,
    ) -> Result<c_int> {
        with(self.request, self.argument, step)
    }

    fn in_file<T>(&self, step: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        let mut state = self.node.state();
        let file = state.files.get_mut(&self.file).ok_or(Errno(libc::EBADF))?;
        step(file)
    }

    fn sync(&self, handle: u32) -> Result<Arc<SyncObject>> {
        self.in_file(|file| file.sync(handle).cloned())
    }

    fn has_object(&self, handle: u32) -> Result<()> {
        self.in_file(|file| file.object(handle).map(drop))
    }

    fn capability(&self, capability: &mut uapi::Capability) -> Result<()> {
        const PRIME: u64 = 0x5;
        const TIMESTAMP_MONOTONIC: u64 = 0x6;
        const SYNCOBJ: u64 = 0x13;
        const SYNCOBJ_TIMELINE: u64 = 0x14;
        capability.value = match capability.which {
            PRIME => 3,
            TIMESTAMP_MONOTONIC | SYNCOBJ => 1,
            SYNCOBJ_TIMELINE => u64::from(matches!(self.node.model, Model::Panthor { .. })),
            _ => return Err(Errno(libc::EOPNOTSUPP)),
        };
        Ok(())
    }
}

fn get_param(machine: &Mutex<Machine>, argument: &mut uapi::GetParam) -> Result<()> {
    valid(argument.pad == 0)?;
    let value = machine::parameter(&mut locked(machine), argument.parameter);
    argument.value = value.ok_or(Errno::INVALID)?;
    Ok(())
}

/// Zero where the app's is shorter; written back.
fn with<T: FromBytes + IntoBytes + Immutable>(
    request: Request,
    argument: u64,
    step: impl FnOnce(&mut T) -> Result<()>,
) -> Result<c_int> {
    let mut value = T::new_zeroed();
    let size = request.size().min(size_of::<T>());
    if request.is_read() {
        user::read(argument, &mut value.as_mut_bytes()[..size])?;
    }
    step(&mut value)?;
    if request.is_written() {
        // SAFETY: by the request, the answer goes to the argument.
        unsafe { user::write(argument, &value.as_bytes()[..size]) }?;
    }
    Ok(0)
}

fn version(driver: &Driver, version: &mut uapi::Version) -> Result<()> {
    [version.major, version.minor, version.patch] = driver.version;
    for (length, place, text) in [
        (&mut version.name_length, version.name, driver.name),
        (&mut version.date_length, version.date, driver.date),
        (&mut version.text_length, version.text, driver.text),
    ] {
        if place != 0 {
            let text = &text.as_bytes()[..text.len().min(*length)];
            // SAFETY: the request says that so many bytes of text go there.
            unsafe { user::write(place as u64, text) }?;
        }
        *length = text.len();
    }
    Ok(())
}

/// Closed if the answer cannot be written.
struct ForApp(OwnedFd);

impl ForApp {
    fn new(file: &OwnedFd, close_on_exec: bool) -> Result<Self> {
        use std::os::fd::FromRawFd;
        let fd = descriptor::for_app(file, close_on_exec)?;
        // SAFETY: the descriptor is new, known to nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn give(self) -> RawFd {
        self.0.into_raw_fd()
    }
}

#[cfg(test)]
mod tests;
