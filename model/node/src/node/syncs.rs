// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sync objects and sync files.

use std::ffi::c_int;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use zerocopy::IntoBytes;

use crate::descriptor::{self, Identity};
use crate::errno::{Errno, Result, valid};
use crate::machine;
use crate::sync::{Fence, SyncObject, both, status};
use crate::user;
use mali_uapi::panfrost::request::{self as uapi, Request, number};

use super::{Call, ForApp, Node, with};

/// SYNCOBJ_CREATE: with a signalled fence.
const SIGNALED: u32 = 1;
pub(super) const WAIT_ALL: u32 = 1;
pub(super) const WAIT_FOR_SUBMIT: u32 = 2;
pub(super) const WAIT_DEADLINE: u32 = 8;
/// The fence is meant, not the object.
const SYNC_FILE: u32 = 1;
const MOST_HANDLES: u32 = 1 << 16;

/// 0: all of the time line.
pub(super) type Point = (Arc<SyncObject>, u64);

impl Call<'_> {
    pub(super) fn sync_create(&self, argument: &mut uapi::Syncobj) -> Result<()> {
        valid(argument.flags & !SIGNALED == 0)?;
        let fence = (argument.flags & SIGNALED != 0).then_some(Ok(()));
        argument.handle = self.in_file(|file| file.add_sync(Arc::new(SyncObject::new(fence))))?;
        Ok(())
    }

    pub(super) fn sync_destroy(&self, argument: &mut uapi::Syncobj) -> Result<()> {
        valid(argument.flags == 0)?;
        self.in_file(|file| file.remove_sync(argument.handle))
    }

    pub(super) fn sync_export(&self, argument: &mut uapi::SyncobjFd) -> Result<()> {
        valid(argument.pad == 0 && argument.flags & !SYNC_FILE == 0)?;
        let sync = self.sync(argument.handle)?;
        if argument.flags & SYNC_FILE != 0 {
            let fence = sync.fence().ok_or(Errno::INVALID)?;
            argument.fd = self.node.fence_file(fence)?.give();
            return Ok(());
        }
        let (file, identity) = descriptor::mark(c"gpureplay-sync")?;
        let fd = ForApp::new(&file, true)?;
        self.node.state().syncs.insert(identity, sync);
        argument.fd = fd.give();
        Ok(())
    }

    pub(super) fn sync_import(&self, argument: &mut uapi::SyncobjFd) -> Result<()> {
        valid(argument.pad == 0 && argument.flags & !SYNC_FILE == 0)?;
        let identity = descriptor::identity(argument.fd).ok_or(Errno::INVALID)?;
        if argument.flags & SYNC_FILE != 0 {
            let fence = self.node.fence(identity).ok_or(Errno::INVALID)?;
            let sync = self.sync(argument.handle)?;
            self.node.signal(&sync, Some(fence));
            return Ok(());
        }
        let sync = self.node.state().syncs.get(&identity).cloned();
        let sync = sync.ok_or(Errno::INVALID)?;
        argument.handle = self.in_file(|file| file.add_sync(sync))?;
        Ok(())
    }

    pub(super) fn sync_set(
        &self,
        argument: &mut uapi::SyncobjArray,
        fence: Option<Fence>,
    ) -> Result<()> {
        valid(argument.pad == 0 && argument.count != 0)?;
        for sync in self.sync_list(argument.handles, argument.count)? {
            self.node.signal(&sync, fence);
        }
        Ok(())
    }

    /// A fence that is present is signalled.
    pub(super) fn sync_wait(&self, argument: &mut uapi::SyncobjWait) -> Result<()> {
        let known = WAIT_ALL | WAIT_FOR_SUBMIT | WAIT_DEADLINE;
        valid(argument.flags & !known == 0 && argument.count != 0)?;
        let syncs = self.sync_list(argument.handles, argument.count)?;
        let points: Vec<Point> = syncs.into_iter().map(|sync| (sync, 0)).collect();
        let may_wait = argument.flags & WAIT_FOR_SUBMIT != 0;
        let all = argument.flags & WAIT_ALL != 0;
        argument.first = self.wait_for(&points, all, may_wait, argument.timeout_ns)?;
        Ok(())
    }

    /// Returns the first point reached.
    pub(super) fn wait_for(
        &self,
        points: &[Point],
        for_all: bool,
        may_wait: bool,
        timeout: i64,
    ) -> Result<u32> {
        let there = |(sync, point): &Point| sync.fence_at(*point).is_some();
        valid(may_wait || points.iter().all(there))?;
        let mut state = self.node.state();
        loop {
            let first = points.iter().position(there);
            let all = points.iter().all(there);
            match first {
                Some(first) if all || !for_all => return Ok(u32::try_from(first).unwrap_or(0)),
                _ => {}
            }
            let left = left(timeout).ok_or(Errno(libc::ETIME))?;
            let waited = self.node.signalled.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn sync_list(&self, handles: u64, count: u32) -> Result<Vec<Arc<SyncObject>>> {
        if count > MOST_HANDLES {
            return Err(Errno::NO_MEMORY);
        }
        let mut syncs = Vec::new();
        user::each(handles, count, |handle| {
            syncs.push(self.sync(handle)?);
            Ok(())
        })?;
        Ok(syncs)
    }
}

impl Node {
    pub(super) fn signal(&self, sync: &SyncObject, fence: Option<Fence>) {
        // So that no thread looks before and sleeps after.
        let state = self.state();
        sync.set(fence);
        drop(state);
        self.signalled.notify_all();
    }

    pub(super) fn reach(&self, sync: &SyncObject, point: u64, fence: Fence) {
        let state = self.state();
        sync.reach(point, fence);
        drop(state);
        self.signalled.notify_all();
    }

    pub(super) fn fence(&self, identity: Identity) -> Option<Fence> {
        let [good, bad] = &self.fences;
        if identity == good.1 {
            return Some(Ok(()));
        }
        (identity == bad.1).then_some(Err(Errno::INVALID))
    }

    fn fence_file(&self, fence: Fence) -> Result<ForApp> {
        let [good, bad] = &self.fences;
        ForApp::new(if fence.is_ok() { &good.0 } else { &bad.0 }, true)
    }

    pub(super) fn sync_file(&self, fence: Fence, request: Request, argument: u64) -> Result<c_int> {
        match request.number() {
            number::SYNC_MERGE => with(request, argument, |merge: &mut uapi::SyncMerge| {
                valid(merge.flags == 0 && merge.pad == 0)?;
                let other = descriptor::identity(merge.fd).and_then(|file| self.fence(file));
                let other = other.ok_or(Errno::NO_ENTRY)?;
                merge.fence = self.fence_file(both(fence, other))?.give();
                Ok(())
            }),
            number::SYNC_FILE_INFO => with(request, argument, |info| {
                file_info(fence, self.driver().name, info)
            }),
            _ => Err(Errno(libc::ENOTTY)),
        }
    }
}

fn file_info(fence: Fence, driver: &str, info: &mut uapi::SyncFileInfo) -> Result<()> {
    valid(info.flags == 0 && info.pad == 0)?;
    if info.fences > 0 {
        let mut one = uapi::SyncFenceInfo {
            object: [0; 32],
            driver: [0; 32],
            status: status(fence),
            flags: 0,
            timestamp: machine::now(),
        };
        for (field, text) in [(&mut one.object, "pan_js"), (&mut one.driver, driver)] {
            field[..text.len()].copy_from_slice(text.as_bytes());
        }
        // SAFETY: the request says that what is known of the fence goes there.
        unsafe { user::write(info.list, one.as_bytes()) }?;
    }
    info.name = [0; 32];
    info.status = status(fence);
    info.fences = 1;
    Ok(())
}

/// Monotonic clock; `None`: it has passed.
fn left(until: i64) -> Option<Duration> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let now = now
        .tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(now.tv_nsec);
    let left = u64::try_from(until.saturating_sub(now)).ok()?;
    (left > 0).then(|| Duration::from_nanos(left).min(Duration::from_secs(3600)))
}
