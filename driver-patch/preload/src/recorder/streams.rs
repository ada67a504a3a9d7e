// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of panthor: objects that get addresses, and streams.

use std::os::fd::RawFd;

use gpureplay_trace::{ErrorCode, Phase};
use mali_drive::ends;
use mali_uapi::accesses::page_tables;
use mali_uapi::panfrost::request as panfrost;
use mali_uapi::panthor as uapi;

use super::{Recorder, space};
use crate::driver::Driver;
use crate::files::Sealed;
use crate::object::Object;

impl<D: Driver> Recorder<D> {
    pub(crate) fn made(&mut self, fd: RawFd, made: &uapi::BoCreate) {
        if let Some(panthor) = self.panthor(fd) {
            panthor.made.insert(made.handle, made.size);
        }
    }

    pub(crate) fn made_sealed(&mut self, fd: RawFd, made: &uapi::BoCreate, sealed: Sealed) {
        self.made(fd, made);
        if let Some(panthor) = self.panthor(fd) {
            panthor.sealed.insert(made.handle, sealed);
        }
    }

    /// `errno` for a place that only the recorder makes possible.
    pub(crate) fn place_refused(&mut self, fd: RawFd, handle: u32) -> Option<i32> {
        match self.panthor(fd)?.sealed.get(&handle)? {
            Sealed::Refused(errno) => Some(*errno),
            Sealed::At(_) => None,
        }
    }

    pub(crate) fn place_told(&mut self, fd: RawFd, place: &uapi::BoMmapOffset) {
        let panthor = self.panthor(fd);
        if let Some(Sealed::At(at)) =
            panthor.and_then(|panthor| panthor.sealed.get_mut(&place.handle))
        {
            *at = Some(place.offset);
        }
    }

    /// The driver would refuse to map it.
    pub(crate) fn is_sealed(&mut self, fd: RawFd, offset: u64) -> bool {
        let here = Sealed::At(Some(offset));
        self.panthor(fd)
            .is_some_and(|panthor| panthor.sealed.values().any(|it| *it == here))
    }

    /// Mappings stay until unmapped.
    pub(crate) fn given_up(&mut self, fd: RawFd, handle: u32) {
        if let Some(panthor) = self.panthor(fd) {
            panthor.made.remove(&handle);
            panthor.sealed.remove(&handle);
        }
    }

    fn panthor(&mut self, fd: RawFd) -> Option<&mut crate::files::Panthor> {
        self.files.by_fd(fd)?.panthor.as_mut()
    }

    /// Called after an address space changed. No job runs.
    pub(crate) fn binds(&mut self, fd: RawFd, vm: u32, operation: &uapi::VmBindOp) {
        match operation.flags & uapi::BIND_KIND {
            uapi::BIND_MAP => self.binds_object(fd, vm, operation),
            uapi::BIND_UNMAP => self.unbinds(fd, operation),
            _ => {}
        }
    }

    fn binds_object(&mut self, fd: RawFd, vm: u32, operation: &uapi::VmBindOp) {
        let Some(panthor) = self.panthor(fd) else {
            return;
        };
        let known = panthor.made.get(&operation.handle) == Some(&operation.size);
        let first = *panthor.vm.get_or_insert(vm) == vm;
        if !known || !first || operation.offset != 0 {
            // A part of an object, a shared one, or a second address space.
            return self.error(ErrorCode::Object, operation.handle.into());
        }
        let mut flags = 0;
        if operation.flags & uapi::MAP_NO_EXECUTE != 0 {
            flags |= panfrost::NO_EXECUTE;
        }
        let mut object = Object::new(operation.handle, flags, operation.va, operation.size);
        object.read_only = operation.flags & uapi::MAP_READ_ONLY != 0;
        // It may have been mapped before it had an address.
        object.mapped = true;
        self.add(fd, object);
    }

    fn unbinds(&mut self, fd: RawFd, operation: &uapi::VmBindOp) {
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        let space = space(file);
        let end = operation.va.saturating_add(operation.size);
        let inside = |object: &&Object| object.va < end && operation.va < object.va + object.size;
        let gone: Vec<(u64, u64)> = file
            .objects()
            .filter(inside)
            .map(|object| (object.va, object.size))
            .collect();
        for (va, size) in gone {
            if va < operation.va || va + size > end {
                self.error(ErrorCode::Object, va);
            }
            let file = self.files.by_fd(fd);
            if let Some(object) = file.and_then(|file| file.remove_at(va)) {
                self.unmapped(space, &object);
            }
        }
    }

    /// All streams before have ended.
    pub(crate) fn before_stream(&mut self, fd: RawFd) {
        if let Some(file) = self.files.by_fd(fd) {
            // A stream may use all of its address space.
            file.objects_mut().for_each(|object| object.listed = true);
        }
        self.regions(fd);
        self.look(fd, Phase::Before, false);
    }

    pub(crate) fn started_stream(&mut self, fd: RawFd, submit: &uapi::QueueSubmit, time_ns: u64) {
        let (Some(file), Some(log)) = (self.files.by_fd(fd), &mut self.log) else {
            return;
        };
        let space = space(file);
        let tables = page_tables(space, file.number);
        log.claim();
        log.put(time_ns, |trace| {
            for (register, value) in tables {
                trace.reg_write(register, value)?;
            }
            let stream = (submit.address, submit.bytes);
            trace.submit_stream(queue(submit), space, stream)
        });
    }

    pub(crate) fn ended_stream(&mut self, fd: RawFd, submit: &uapi::QueueSubmit, well: bool) {
        let ended = self.driver.now();
        self.look(fd, Phase::After, false);
        if let Some(log) = &mut self.log {
            log.put(ended, |trace| {
                trace.complete(queue(submit), ends::status(well))
            });
        }
    }

    pub(crate) fn lost_streams(&mut self) {
        if let Some(log) = &mut self.log {
            log.claim();
        }
        self.error(ErrorCode::JobLost, 1);
    }
}

/// Groups have at most 32 queues.
fn queue(submit: &uapi::QueueSubmit) -> u8 {
    u8::try_from(submit.queue).unwrap_or(u8::MAX)
}
