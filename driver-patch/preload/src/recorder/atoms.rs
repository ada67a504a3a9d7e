// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of kbase: regions, and atoms, which run one by one.

use std::os::fd::RawFd;

use gpureplay_trace::{Driver as Driven, ErrorCode, PAGE_SIZE, Phase};
use mali_uapi::kbase::request::{Atom, Event, event, requirement};

use super::{Recorder, space};
use crate::driver::Driver;
use crate::files::File;
use crate::log::say;
use crate::regions::{Kbase, Region};

impl<D: Driver> Recorder<D> {
    fn kbase(&mut self, fd: RawFd) -> Option<&mut Kbase> {
        self.files.by_fd(fd)?.kbase.as_mut()
    }

    pub(crate) fn made_region(&mut self, fd: RawFd, region: Region) {
        if let Some(kbase) = self.kbase(fd) {
            kbase.made(region);
        }
    }

    pub(crate) fn placed(&mut self, fd: RawFd, offset: u64, va: u64) {
        if let Some(kbase) = self.kbase(fd) {
            kbase.placed(offset, va);
        }
    }

    /// Whether any file has a region here; asks for no memory.
    pub(crate) fn has_regions(&mut self, va: u64, size: u64) -> bool {
        self.files
            .all_mut()
            .filter(|file| file.kind() == Driven::Kbase)
            .any(|file| {
                file.overlap(va, size).is_some()
                    || file.kbase.as_ref().is_some_and(|kbase| kbase.has(va, size))
            })
    }

    /// No job runs.
    pub(crate) fn vacated(&mut self, va: u64, size: u64) {
        let mut gone = Vec::new();
        for file in self.files.all_mut() {
            let Some(kbase) = &mut file.kbase else {
                continue;
            };
            kbase.vacated(va, size);
            while let Some(start) = file.overlap(va, size) {
                let space = space(file);
                gone.extend(file.remove_at(start).map(|object| (space, object)));
            }
        }
        for (space, object) in gone {
            self.unmapped(space, &object);
        }
    }

    pub(crate) fn commits(&mut self, fd: RawFd, va: u64) {
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        if let Some(region) = file.kbase.as_mut().and_then(|kbase| kbase.find(va)) {
            region.grows = true;
        } else if let Some(object) = file.starts_at(va) {
            object.pages.get_or_insert(0);
        }
    }

    pub(crate) fn purgeable(&mut self, fd: RawFd, va: u64, purgeable: bool) {
        self.settle();
        if let Some(object) = self.files.by_fd(fd).and_then(|file| file.starts_at(va)) {
            object.purgeable = purgeable;
        }
    }

    pub(super) fn settle(&mut self) {
        for fd in self.files.fds_of(Driven::Kbase) {
            while let Some((region, handle)) = self.kbase(fd).and_then(Kbase::settle) {
                self.add(fd, region.object(handle));
            }
        }
    }

    fn count_pages(&mut self, fd: RawFd) {
        let driver = &self.driver;
        let Some(file) = self.files.by_fd(fd) else {
            return;
        };
        let mut changed = false;
        for object in file.objects_mut() {
            if let Some(before) = object.pages {
                let most = object.size / PAGE_SIZE as u64;
                let now = driver.committed(fd, object.va).unwrap_or(0).min(most);
                changed |= now != before;
                object.pages = Some(now);
            }
        }
        file.changed |= changed;
    }

    pub(crate) fn before_atom(&mut self, fd: RawFd) {
        self.settle();
        self.count_pages(fd);
        if let Some(file) = self.files.by_fd(fd) {
            // A chain may use all of its context.
            file.objects_mut().for_each(|object| object.listed = true);
        }
        self.regions(fd);
        self.look(fd, Phase::Before, false);
    }

    pub(crate) fn started_atom(&mut self, fd: RawFd, atom: &Atom, time_ns: u64) {
        self.starts(fd, (atom.job_slot(), atom.chain), time_ns);
    }

    pub(crate) fn ended_atom(&mut self, fd: RawFd, atom: &Atom, code: u32) {
        self.count_pages(fd);
        self.regions(fd);
        let well = code == event::DONE;
        self.ends(fd, (atom.job_slot(), atom.chain), well);
    }

    pub(crate) fn lost_atom(&mut self, fd: RawFd, atom: &Atom) {
        self.lost(atom.job_slot());
        if let Some(kbase) = self.kbase(fd) {
            kbase.refused = true;
        }
    }

    pub(crate) fn refuses(&mut self, fd: RawFd, code: ErrorCode, detail: u64) {
        let Some(kbase) = self.kbase(fd) else {
            return;
        };
        if !std::mem::replace(&mut kbase.refused, true) {
            say(&format!("{code} {detail:#x}; the app continues"));
        }
        if let Some(log) = &mut self.log {
            log.claim();
        }
        self.error(code, detail);
    }

    pub(crate) fn is_refused(&mut self, fd: RawFd) -> bool {
        self.kbase(fd).is_none_or(|kbase| kbase.refused)
    }

    pub(crate) fn keep_event(&mut self, fd: RawFd, event: Event) {
        if let Some(kbase) = self.kbase(fd) {
            kbase.events.push_back(event);
        }
    }

    pub(crate) fn next_event(&mut self, fd: RawFd) -> Option<Event> {
        self.kbase(fd)?.events.pop_front()
    }

    pub(crate) fn has_event(&mut self, fd: RawFd) -> bool {
        self.kbase(fd).is_some_and(|kbase| !kbase.events.is_empty())
    }
}

/// `None`: it can be recorded.
pub(crate) fn refusal(atom: &Atom) -> Option<(ErrorCode, u64)> {
    let needs = atom.requirements;
    let code = match needs & requirement::SOFT_KIND {
        requirement::JIT_ALLOC | requirement::JIT_FREE => ErrorCode::JitMemory,
        soft if soft & requirement::SOFT_JOB != 0 => ErrorCode::SoftJob,
        _ if needs & requirement::RENDER_PASS != 0 => ErrorCode::SoftJob,
        _ => return None,
    };
    Some((code, needs.into()))
}

impl File {
    fn overlap(&self, va: u64, size: u64) -> Option<u64> {
        let end = va.saturating_add(size);
        let overlaps = |object: &&crate::object::Object| object.va + object.size > va;
        let object = self.before(end).next().filter(overlaps)?;
        Some(object.va)
    }
}
