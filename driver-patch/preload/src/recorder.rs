// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the trace is told, call by call: the state machine between the app's requests and the records.

use std::os::fd::RawFd;
use std::path::PathBuf;

use gpureplay_trace::{Begin, Driver as Driven, ErrorCode, PAGE_SIZE, Phase, RegionFlags};
use mali_facts::registers::JobStatus;

use crate::audit::Audit;
use crate::driver::Driver;
use crate::files::{File, Files};
use crate::log::Log;
use crate::object::Object;
use crate::panfrost::{self, Start};
use mali_facts::panfrost::parameter;
use mali_facts::panfrost::request as uapi;

/// Notes that are kept until the app opens panfrost.
const MAX_EARLY: usize = 4096;
/// Address spaces that a trace can tell apart.
const SPACES: u32 = 16;

/// A recording in the making.
pub(crate) struct Recorder<D> {
    driver: D,
    path: PathBuf,
    files: Files,
    log: Option<Log>,
    /// END is written: the app ends.
    ended: bool,
    /// Notes that came before the trace began.
    early: Vec<String>,
    coherent: bool,
    /// SHADER_PRESENT.
    cores: u64,
    /// Jobs by slot.
    jobs: [u32; 2],
    /// When the trace began, in nanoseconds.
    began: u64,
    audit: Audit,
}

impl<D: Driver> Recorder<D> {
    /// A recorder that writes a trace to a path as soon as there is a job.
    pub(crate) fn new(driver: D, path: PathBuf) -> Self {
        Self {
            driver,
            path,
            files: Files::default(),
            log: None,
            ended: false,
            early: Vec::new(),
            coherent: false,
            cores: 0,
            jobs: [0; 2],
            began: 0,
            audit: Audit::default(),
        }
    }

    /// Whether a number names a file of panfrost, which is then followed.
    pub(crate) fn is_panfrost(&mut self, fd: RawFd) -> bool {
        if self.files.by_fd(fd).is_some() {
            return true;
        }
        if self.ended || !self.driver.is_panfrost(fd) {
            return false;
        }
        self.begin(fd);
        self.files
            .learn(fd, |known| self.driver.is_same_file(fd, known));
        true
    }

    fn begin(&mut self, fd: RawFd) {
        if self.log.is_some() {
            return;
        }
        let param = |which| self.driver.param(fd, which);
        self.coherent = match param(parameter::SELECTED_COHERENCY) {
            Some(selected) => selected != parameter::NOT_COHERENT,
            None => self.driver.tree_is_coherent(fd),
        };
        self.cores = param(parameter::SHADER_PRESENT).unwrap_or(0);
        let begin = Begin {
            driver: Driven::Panfrost,
            coherent: self.coherent,
            in_app: true,
            driver_name: "panfrost",
            kernel_release: &self.driver.release(),
        };
        let now = self.driver.now();
        let Ok(mut log) = Log::begin(&self.path, &begin, now) else {
            return;
        };
        let reads = panfrost::identity(param);
        let writes = panfrost::settings(param);
        let early = std::mem::take(&mut self.early);
        log.put(now, |trace| {
            for (register, value) in reads {
                trace.reg_read(register, value)?;
            }
            for (register, value) in writes {
                trace.reg_write(register, value)?;
            }
            early.iter().try_for_each(|note| trace.note(note))
        });
        self.log = Some(log);
        self.began = now;
    }

    /// What an OpenCL layer says.
    pub(crate) fn note(&mut self, text: &str) {
        match &mut self.log {
            Some(log) => log.put(self.driver.now(), |trace| trace.note(text)),
            None if self.early.len() < MAX_EARLY => self.early.push(text.to_owned()),
            None => {}
        }
    }

    /// Whether notes are wanted.
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

    /// An object was made.
    pub(crate) fn created(&mut self, fd: RawFd, made: &uapi::CreateBo) {
        let object = Object::new(made.handle, made.flags, made.va, made.size.into());
        self.add(fd, object);
    }

    /// A shared buffer was taken into the file.
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
        if !object.is_heap() {
            match self.driver.map(fd, object.handle, object.size) {
                Some(mapped) => {
                    object.offset = mapped.offset;
                    object.view = Some(mapped.view);
                }
                None => self.error(ErrorCode::Page, object.va),
            }
        }
        let (flags, va, size) = (object.flags, object.va, object.size);
        // A heap has no pages before a tiler job needs them.
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

    /// An object is about to be freed. No job runs.
    pub(crate) fn freed(&mut self, fd: RawFd, handle: u32) {
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        let space = space(file);
        if let Some(object) = file.remove(handle) {
            self.unmapped(space, &object);
        }
    }

    /// The app gives an object to others.
    pub(crate) fn exported(&mut self, fd: RawFd, handle: u32) {
        if let Some(object) = self.files.by_fd(fd).and_then(|file| file.find(handle)) {
            object.shared = true;
        }
    }

    /// The app is about to let the kernel take an object's pages, or wants them back. No job runs.
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

    /// What the driver answered. Of an object whose pages are gone nothing can be read any more.
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

    /// The app is about to map what lies at an offset of a file.
    pub(crate) fn maps(&mut self, fd: RawFd, offset: u64) {
        if let Some(file) = self.files.by_fd(fd) {
            let objects = file.objects_mut();
            objects
                .filter(|object| object.offset == offset)
                .for_each(|object| object.mapped = true);
        }
    }

    /// The app is about to close a number, or has given it to another file.
    pub(crate) fn closes(&mut self, fd: RawFd) {
        if let Some(mut file) = self.files.forget(fd) {
            let space = space(&file);
            for object in file.drain() {
                self.unmapped(space, &object);
            }
        }
    }

    /// A sync object of the recorder's own in the file, which `create` makes.
    pub(crate) fn sync(&mut self, fd: RawFd, create: impl FnOnce() -> Option<u32>) -> Option<u32> {
        let file = self.files.by_fd(fd)?;
        if file.sync.is_none() {
            file.sync = create();
        }
        file.sync
    }

    /// The app has destroyed a sync object, whoever made it.
    pub(crate) fn sync_gone(&mut self, fd: RawFd, handle: u32) {
        if let Some(file) = self.files.by_fd(fd) {
            file.sync = file.sync.filter(|own| *own != handle);
        }
    }

    /// A job is about to be submitted, and all before it have ended: logs what the app changed. Gives back what is wrong with the job if
    /// the driver takes it.
    pub(crate) fn before_job(&mut self, fd: RawFd, handles: &[u32]) -> Vec<(ErrorCode, u64)> {
        let Some(file) = self.files.by_fd(fd) else {
            return Vec::new();
        };
        file.objects_mut().for_each(|object| object.listed = false);
        let mut wrong = Vec::new();
        for handle in handles {
            match file.find(*handle) {
                Some(object) => {
                    object.listed = true;
                    if object.purgeable {
                        wrong.push((ErrorCode::Page, object.va));
                    }
                }
                None => wrong.push((ErrorCode::Object, u64::from(*handle))),
            }
        }
        self.regions(fd);
        self.audit.before(|| self.driver.asleep());
        self.look(fd, Phase::Before);
        wrong
    }

    /// Lists the mapped memory, if it changed.
    fn regions(&mut self, fd: RawFd) {
        let coherent = self.coherent;
        let (Some(file), Some(log)) = (self.files.by_fd(fd), &mut self.log) else {
            return;
        };
        if !std::mem::take(&mut file.changed) {
            return;
        }
        let space = space(file);
        let mut first = RegionFlags::FIRST;
        let objects = file.objects().filter(|object| !object.is_heap());
        log.put(self.driver.now(), |trace| {
            for object in objects {
                let mut flags = RegionFlags::READ | RegionFlags::WRITE | first;
                first = RegionFlags(0);
                if object.flags & uapi::NO_EXECUTE == 0 {
                    flags = flags | RegionFlags::EXECUTE;
                }
                if coherent {
                    flags = flags | RegionFlags::CPU_CACHED;
                }
                trace.region(space, flags, object.va, object.size / PAGE_SIZE as u64)?;
            }
            Ok(())
        });
    }

    /// Logs the pages that changed: before a job those that the app may have changed, after it those that the job may have changed.
    fn look(&mut self, fd: RawFd, phase: Phase) {
        let (Some(file), Some(log)) = (self.files.by_fd(fd), &mut self.log) else {
            return;
        };
        let space = space(file);
        let now = self.driver.now();
        let mut unseen = None;
        for object in file.objects_mut() {
            let of_app = phase == Phase::Before && (object.mapped || !object.seen);
            if !(of_app || object.listed || object.shared) || object.view.is_none() {
                continue;
            }
            if object.flags & uapi::CACHED_MAPPING != 0
                && !self.coherent
                && !self.driver.invalidate(fd, object.handle, object.size)
            {
                unseen = unseen.or(Some((ErrorCode::Page, object.va)));
            }
            // Nobody but a job can have changed what the app has not mapped, and jobs are looked at.
            let sealed = phase == Phase::Before && is_sealed(object);
            for (va, page) in object.changes() {
                if sealed {
                    unseen = unseen.or(Some((ErrorCode::Unseen, va)));
                }
                log.put(now, |trace| trace.page(space, phase, va, &page));
            }
        }
        if let Some((code, va)) = unseen {
            self.error(code, va);
        }
    }

    /// The driver has taken the job, at a time in nanoseconds, with what is wrong with it.
    pub(crate) fn started(
        &mut self,
        fd: RawFd,
        job: &uapi::Submit,
        time_ns: u64,
        wrong: &[(ErrorCode, u64)],
    ) {
        for (code, detail) in wrong {
            self.error(*code, *detail);
        }
        let slot = slot(job);
        let (Some(file), Some(log)) = (self.files.by_fd(fd), &mut self.log) else {
            return;
        };
        let Some(jobs) = self.jobs.get_mut(usize::from(slot)) else {
            return;
        };
        let start = Start {
            slot,
            space: space(file),
            file: file.number,
            head: job.head,
            cores: self.cores,
            jobs: *jobs,
        };
        *jobs = jobs.wrapping_add(1);
        log.claim();
        log.put(time_ns, |trace| {
            for (register, value) in start.writes() {
                trace.reg_write(register, value)?;
            }
            trace.submit(slot, start.space, job.head)?;
            let (register, value) = start.doorbell();
            trace.reg_write(register, value)
        });
    }

    /// The job has ended; `well` if the driver says that it went well.
    pub(crate) fn ended_job(&mut self, fd: RawFd, job: &uapi::Submit, well: bool) {
        let ended = self.driver.now();
        self.look(fd, Phase::After);
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        let driver = &self.driver;
        let written = self
            .audit
            .after(file, self.began, || driver.now(), || driver.asleep());
        let status = match (chain_status(file, job.head), well) {
            (JobStatus::DONE, false) => JobStatus::UNKNOWN,
            (status, _) => status,
        };
        if let Some(log) = &mut self.log {
            log.put(ended, |trace| trace.complete(slot(job), status.0));
        }
        if let Some(va) = written {
            self.error(ErrorCode::Unseen, va);
        }
    }

    /// The job's end cannot be seen.
    pub(crate) fn lost_job(&mut self, job: &uapi::Submit) {
        self.error(ErrorCode::JobLost, 1 << slot(job));
    }

    /// Writes END; nothing is recorded any more.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        if let Some(log) = self.log.take() {
            log.end(self.driver.now());
        }
    }

    /// Monotonic clock, nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.driver.now()
    }
}

/// The number that stands for a file's address space.
fn space(file: &File) -> u32 {
    file.number % SPACES
}

/// `panfrost_job_get_slot`
fn slot(job: &uapi::Submit) -> u8 {
    u8::from(job.requirements & uapi::FRAGMENT == 0)
}

/// Whether only jobs that list an object can change it.
fn is_sealed(object: &Object) -> bool {
    object.seen && !object.mapped && !object.shared
}

/// A page of an object that changed although nobody can have changed it.
fn unlisted_write(object: &Object) -> Option<u64> {
    is_sealed(object).then(|| object.first_change()).flatten()
}

/// The status in the first header of a chain that is not DONE, or DONE.
fn chain_status(file: &File, head: u64) -> JobStatus {
    /// Bytes from a header's start to the next header's address.
    const NEXT: u64 = 24;
    const MAX_JOBS: u32 = 1 << 16;
    let word = |va: u64| file.at(va).and_then(|object| object.word(va));
    let mut at = head;
    for _ in 0..MAX_JOBS {
        let (Some(status), Some(next)) = (word(at), at.checked_add(NEXT).and_then(word)) else {
            return JobStatus::JOB_READ_FAULT;
        };
        let status = JobStatus(status as u32 & 0xff);
        if status != JobStatus::DONE {
            return status;
        }
        if next == 0 {
            return status;
        }
        at = next;
    }
    JobStatus::JOB_READ_FAULT
}

#[cfg(test)]
mod tests;
