// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the app's requests to the trace's records.

use std::os::fd::RawFd;
use std::path::PathBuf;

use gpureplay_trace::{Begin, Driver as Driven, ErrorCode};

use crate::announced::Announced;
use crate::audit::Audit;
use crate::driver::Driver;
use crate::files::{File, Files, Panthor};
use crate::log::Log;
use crate::object::Object;
use crate::regions::Kbase;
use mali_uapi::accesses::Opened;
use mali_uapi::kbase;
use mali_uapi::panfrost::parameter;
use mali_uapi::panfrost::request as uapi;

const MAX_EARLY: usize = 4096;
/// Address spaces that a trace can tell apart.
const SPACES: u32 = 16;

pub(crate) struct Recorder<D> {
    driver: D,
    path: PathBuf,
    files: Files,
    log: Option<Log>,
    ended: bool,
    early_notes: Vec<String>,
    coherent: bool,
    /// SHADER_PRESENT.
    cores: u64,
    jobs: [u32; 3],
    began_ns: u64,
    audit: Audit,
    announced: Announced,
}

impl<D: Driver> Recorder<D> {
    pub(crate) fn new(driver: D, path: PathBuf) -> Self {
        Self {
            driver,
            path,
            files: Files::default(),
            log: None,
            ended: false,
            early_notes: Vec::new(),
            coherent: false,
            cores: 0,
            jobs: [0; 3],
            began_ns: 0,
            audit: Audit::default(),
            announced: Announced::default(),
        }
    }

    pub(crate) fn kind(&mut self, fd: RawFd) -> Option<Driven> {
        if let Some(file) = self.files.by_fd(fd) {
            return Some(file.kind());
        }
        let kind = self.driver.kind(fd).filter(|_| !self.ended)?;
        self.begin(fd, kind);
        let file = self
            .files
            .learn(fd, |known| self.driver.is_same_file(fd, known));
        match kind {
            Driven::Panthor if file.panthor.is_none() => file.panthor = Some(Panthor::default()),
            Driven::Kbase if file.kbase.is_none() => file.kbase = Some(Kbase::new()),
            _ => {}
        }
        Some(kind)
    }

    fn begin(&mut self, fd: RawFd, kind: Driven) {
        if self.log.is_some() {
            return;
        }
        let info = match kind {
            Driven::Panthor => self.driver.gpu_info(fd),
            _ => None,
        };
        let properties = match kind {
            Driven::Kbase => self.driver.properties(fd),
            _ => Vec::new(),
        };
        let property = |number| properties.iter().find(|it| it.0 == number).map(|it| it.1);
        let param = |which| self.driver.param(fd, which);
        let selected = match kind {
            Driven::Panthor => None,
            Driven::Kbase => property(kbase::COHERENCY).map(|it| it != kbase::NOT_COHERENT),
            _ => param(parameter::SELECTED_COHERENCY).map(|it| it != parameter::NOT_COHERENT),
        };
        self.coherent = match selected {
            Some(selected) => selected,
            None => self.driver.tree_is_coherent(fd),
        };
        let begin = Begin {
            driver: kind,
            coherent: self.coherent,
            in_app: true,
            driver_name: kind.name(),
            kernel_release: &self.driver.release(),
        };
        let now = self.driver.now();
        let Ok(mut log) = Log::begin(&self.path, &begin, now) else {
            return;
        };
        let opened = match kind {
            Driven::Panthor => Opened::by_panthor(&info.unwrap_or_default()),
            Driven::Kbase => Opened::by_kbase(&properties),
            _ => Opened::by_panfrost(param),
        };
        self.cores = opened.cores;
        let early_notes = std::mem::take(&mut self.early_notes);
        log.put(now, |trace| {
            for (register, value) in opened.reads {
                trace.reg_read(register, value)?;
            }
            for (register, value) in opened.writes {
                trace.reg_write(register, value)?;
            }
            early_notes.iter().try_for_each(|note| trace.note(note))
        });
        self.log = Some(log);
        self.began_ns = now;
    }

    pub(crate) fn note(&mut self, text: &str) {
        // A note's memory is looked for in the records before it.
        self.settle();
        self.announced.note(text);
        match &mut self.log {
            Some(log) => log.put(self.driver.now(), |trace| trace.note(text)),
            None if self.early_notes.len() < MAX_EARLY => self.early_notes.push(text.to_owned()),
            None => {}
        }
    }

    pub(crate) fn wants_notes(&self) -> bool {
        !self.ended
    }

    fn error(&mut self, code: ErrorCode, detail: u64) {
        if let Some(log) = &mut self.log {
            log.put(self.driver.now(), |trace| trace.error(code, detail));
        }
    }

    fn mapping(&mut self, map: bool, (space, flags, va, size): (u32, u32, u64, u64)) {
        if let Some(log) = &mut self.log {
            log.put(self.driver.now(), |trace| {
                trace.mapping(map, Some(space), flags, va, size)
            });
        }
    }

    pub(crate) fn created(&mut self, fd: RawFd, made: &uapi::CreateBo) {
        let object = Object::new(made.handle, made.flags, made.va, made.size.into());
        self.add(fd, object);
    }

    pub(crate) fn imported(&mut self, fd: RawFd, buffer: RawFd, handle: u32) {
        if let Some(known) = self.files.by_fd(fd).and_then(|file| file.find(handle)) {
            known.shared = true;
            return;
        }
        let size = self.driver.shared_size(buffer);
        let va = self.driver.address(fd, handle);
        let (Some(size), Some(va)) = (size, va) else {
            self.error(ErrorCode::Object, handle.into());
            return;
        };
        let mut object = Object::new(handle, uapi::NO_EXECUTE, va, size);
        object.shared = true;
        self.add(fd, object);
    }

    fn add(&mut self, fd: RawFd, mut object: Object) {
        if self.files.by_fd(fd).is_none() {
            return;
        }
        if let Some(file) = self.files.by_fd(fd)
            && !object.is_heap()
        {
            match self.driver.map(fd, file.kind(), &object) {
                Some(mapped) => {
                    object.offset = mapped.offset;
                    object.view = Some(mapped.view);
                }
                None => self.error(ErrorCode::Page, object.va),
            }
        }
        let (flags, va, size) = (object.flags, object.va, object.size);
        // A heap has no pages before a tiler job.
        let heap = object.is_heap();
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        let space = space(file);
        let replaced = file.add(object);
        if let Some(old) = replaced {
            self.unmapped(space, &old);
        }
        if !heap {
            self.mapping(true, (space, flags, va, size));
        }
    }

    fn unmapped(&mut self, space: u32, object: &Object) {
        if let Some(va) = unlisted_write(object) {
            self.error(ErrorCode::Unseen, va);
        }
        if !object.is_heap() {
            self.mapping(false, (space, object.flags, object.va, object.size));
        }
    }

    /// Called before an object is freed. No job runs.
    pub(crate) fn freed(&mut self, fd: RawFd, handle: u32) {
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        let space = space(file);
        if let Some(object) = file.remove(handle) {
            self.unmapped(space, &object);
        }
    }

    pub(crate) fn exported(&mut self, fd: RawFd, handle: u32) {
        if let Some(object) = self.files.by_fd(fd).and_then(|file| file.find(handle)) {
            object.shared = true;
        }
    }

    /// Called before either advice. No job runs.
    pub(crate) fn advises(&mut self, fd: RawFd, advice: &uapi::Madvise) {
        if let Some(object) = self
            .files
            .by_fd(fd)
            .and_then(|file| file.find(advice.handle))
            && advice.advice != uapi::WILL_NEED
        {
            object.purgeable = true;
        }
    }

    /// Called after the answer to advice. Pages that are gone cannot be read.
    pub(crate) fn advised(&mut self, fd: RawFd, advice: &uapi::Madvise) {
        if let Some(object) = self
            .files
            .by_fd(fd)
            .and_then(|file| file.find(advice.handle))
            && advice.advice == uapi::WILL_NEED
        {
            object.purgeable = advice.retained == 0;
        }
    }

    pub(crate) fn maps(&mut self, fd: RawFd, offset: u64) {
        if let Some(file) = self.files.by_fd(fd) {
            let objects = file.objects_mut();
            objects
                .filter(|object| object.offset == offset)
                .for_each(|object| object.mapped = true);
        }
    }

    /// Called before a file is closed, or the number names another file now.
    pub(crate) fn closes(&mut self, fd: RawFd) {
        if let Some(mut file) = self.files.forget(fd) {
            let space = space(&file);
            for object in file.drain() {
                self.unmapped(space, &object);
            }
        }
    }

    pub(crate) fn sync(&mut self, fd: RawFd, create: impl FnOnce() -> Option<u32>) -> Option<u32> {
        let file = self.files.by_fd(fd)?;
        if file.sync.is_none() {
            file.sync = create();
        }
        file.sync
    }

    pub(crate) fn sync_gone(&mut self, fd: RawFd, handle: u32) {
        if let Some(file) = self.files.by_fd(fd) {
            file.sync = file.sync.filter(|own| *own != handle);
        }
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
        if let Some(log) = self.log.take() {
            log.end(self.driver.now());
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.driver.now()
    }
}

fn space(file: &File) -> u32 {
    file.number % SPACES
}

/// True if only jobs that list it can change it.
fn is_sealed(object: &Object) -> bool {
    object.seen && !object.mapped && !object.shared
}

fn unlisted_write(object: &Object) -> Option<u64> {
    is_sealed(object).then(|| object.first_change()).flatten()
}

pub(crate) mod atoms;
mod jobs;
mod streams;
#[cfg(test)]
mod tests;
