// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of a job: changes before it, start, end, changes.

use std::os::fd::RawFd;

use gpureplay_trace::{ErrorCode, PAGE_SIZE, Phase, RegionFlags};
use mali_drive::ends::Ends;
use mali_uapi::accesses::Start;
use mali_uapi::panfrost::request as uapi;

use super::{Recorder, is_sealed, space};
use crate::driver::Driver;

impl<D: Driver> Recorder<D> {
    /// All jobs before have ended. Gives what is wrong with the job if the driver takes it.
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
        if let Some(file) = self.files.by_fd(fd) {
            let driver = &self.driver;
            self.audit
                .before(file, self.began_ns, || driver.now(), || driver.asleep());
        }
        let all = self.announced.before_job();
        self.look(fd, Phase::Before, all);
        wrong
    }

    pub(super) fn regions(&mut self, fd: RawFd) {
        let coherent = self.coherent;
        let (Some(file), Some(log)) = (self.files.by_fd(fd), &mut self.log) else {
            return;
        };
        if !std::mem::take(&mut file.changed) {
            return;
        }
        let space = space(file);
        let mut first = RegionFlags::FIRST;
        let objects = file
            .objects()
            .filter(|object| !object.is_heap() && object.there() > 0);
        log.put(self.driver.now(), |trace| {
            for object in objects {
                let mut flags = RegionFlags::READ | first;
                if !object.read_only {
                    flags = flags | RegionFlags::WRITE;
                }
                first = RegionFlags(0);
                if object.flags & uapi::NO_EXECUTE == 0 {
                    flags = flags | RegionFlags::EXECUTE;
                }
                if coherent {
                    flags = flags | RegionFlags::CPU_CACHED;
                }
                trace.region(space, flags, object.va, object.there() / PAGE_SIZE as u64)?;
            }
            Ok(())
        });
    }

    /// What the job may use, what is new, and on demand all that the app has mapped. Other writes have time until a
    /// job lists them.
    pub(super) fn look(&mut self, fd: RawFd, phase: Phase, all: bool) {
        let (Some(file), Some(log)) = (self.files.by_fd(fd), &mut self.log) else {
            return;
        };
        let (space, kind) = (space(file), file.kind());
        let now = self.driver.now();
        let mut unseen = None;
        for object in file.objects_mut() {
            let new = phase == Phase::Before && !object.seen;
            let asked = all && object.mapped;
            if !(new || asked || object.listed || object.shared) || object.view.is_none() {
                continue;
            }
            if object.flags & uapi::CACHED_MAPPING != 0
                && !self.coherent
                && !self.driver.invalidate(fd, kind, object)
            {
                unseen = unseen.or(Some((ErrorCode::Page, object.va)));
            }
            // Only a job can have changed it, and jobs are looked at.
            let sealed = phase == Phase::Before && is_sealed(object);
            for (va, page) in object.changes() {
                if sealed {
                    unseen = unseen.or(Some((ErrorCode::Unseen, va)));
                }
                log.put(now, |trace| {
                    trace.page(space, phase, va, zerocopy::transmute_ref!(&page))
                });
            }
        }
        if let Some((code, va)) = unseen {
            self.error(code, va);
        }
    }

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
        self.starts(fd, (slot(job), job.head), time_ns);
    }

    pub(super) fn starts(&mut self, fd: RawFd, (slot, head): (u8, u64), time_ns: u64) {
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
            head,
            cores: self.cores,
            jobs: *jobs,
        };
        *jobs = jobs.wrapping_add(1);
        log.claim();
        log.put(time_ns, |trace| {
            for (register, value) in start.writes() {
                trace.reg_write(register, value)?;
            }
            trace.submit(slot, start.space, head)?;
            let (register, value) = start.doorbell();
            trace.reg_write(register, value)
        });
    }

    pub(crate) fn ended_job(&mut self, fd: RawFd, job: &uapi::Submit, well: bool) {
        self.ends(fd, (slot(job), job.head), well);
    }

    pub(super) fn ends(&mut self, fd: RawFd, (slot, head): (u8, u64), well: bool) {
        let ended = self.driver.now();
        self.look(fd, Phase::After, false);
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        let driver = &self.driver;
        let written = self.audit.after(file, || driver.now(), || driver.asleep());
        let status = Ends::of(|va, to: &mut [u8]| file.read(va, to), head).status(well);
        if let Some(log) = &mut self.log {
            log.put(ended, |trace| trace.complete(slot, status));
        }
        if let Some(va) = written {
            self.error(ErrorCode::Unseen, va);
        }
    }

    pub(crate) fn lost_job(&mut self, job: &uapi::Submit) {
        self.lost(slot(job));
    }

    pub(super) fn lost(&mut self, slot: u8) {
        // A job of which nothing else is known still has the trace.
        if let Some(log) = &mut self.log {
            log.claim();
        }
        self.error(ErrorCode::JobLost, 1 << (slot & 31));
    }
}

/// Slot of a job, as `panfrost_job_get_slot`.
fn slot(job: &uapi::Submit) -> u8 {
    u8::from(job.requirements & uapi::FRAGMENT == 0)
}
