// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time lines of sync objects, for panthor.

use std::ffi::c_int;

use mali_uapi::panfrost::request::{self as uapi, number};
use zerocopy::{FromZeros, IntoBytes};

use crate::errno::{Errno, Result, valid};
use crate::user;

use super::Call;
use super::syncs::{Point, WAIT_ALL, WAIT_DEADLINE, WAIT_FOR_SUBMIT};

/// Only for a fence to come.
const WAIT_AVAILABLE: u32 = 4;

impl Call<'_> {
    pub(super) fn time_lines(&self) -> Result<c_int> {
        match self.request.number() {
            number::SYNCOBJ_TIMELINE_WAIT => self.with(|argument| self.timeline_wait(argument)),
            number::SYNCOBJ_QUERY => self.with(|argument| self.timeline_query(argument)),
            number::SYNCOBJ_TRANSFER => self.with(|argument| self.transfer(argument)),
            _ => self.with(|argument: &mut uapi::SyncobjTimelineArray| {
                valid(argument.flags == 0 && argument.count != 0)?;
                for (sync, point) in
                    self.points(argument.handles, argument.points, argument.count)?
                {
                    self.node.reach(&sync, point, Ok(()));
                }
                Ok(())
            }),
        }
    }

    fn timeline_wait(&self, argument: &mut uapi::SyncobjTimelineWait) -> Result<()> {
        let known = WAIT_ALL | WAIT_FOR_SUBMIT | WAIT_AVAILABLE | WAIT_DEADLINE;
        valid(argument.flags & !known == 0 && argument.count != 0)?;
        let points = self.points(argument.handles, argument.points, argument.count)?;
        let may_wait = argument.flags & (WAIT_FOR_SUBMIT | WAIT_AVAILABLE) != 0;
        let all = argument.flags & WAIT_ALL != 0;
        argument.first = self.wait_for(&points, all, may_wait, argument.timeout_ns)?;
        Ok(())
    }

    fn timeline_query(&self, argument: &mut uapi::SyncobjTimelineArray) -> Result<()> {
        // Flag 1: the last submitted; all have ended.
        valid(argument.flags & !1 == 0 && argument.count != 0)?;
        let syncs = self.sync_list(argument.handles, argument.count)?;
        for (index, sync) in (0..).zip(syncs) {
            let to = place(argument.points, index)?;
            // SAFETY: the request says that the points go there, one per object.
            unsafe { user::write(to, sync.point().as_bytes()) }?;
        }
        Ok(())
    }

    fn transfer(&self, argument: &mut uapi::SyncobjTransfer) -> Result<()> {
        valid(argument.pad == 0 && argument.flags & !WAIT_FOR_SUBMIT == 0)?;
        let (source, target) = (self.sync(argument.source)?, self.sync(argument.target)?);
        let fence = source.fence_at(argument.source_point);
        let fence = fence.ok_or(Errno::INVALID)?;
        self.node.reach(&target, argument.target_point, fence);
        Ok(())
    }

    /// Reads sync objects and points; without points, all of each.
    fn points(&self, handles: u64, points: u64, count: u32) -> Result<Vec<Point>> {
        let syncs = self.sync_list(handles, count)?;
        let point = |index| {
            let mut point = u64::new_zeroed();
            if points != 0 {
                user::read(place(points, index)?, point.as_mut_bytes())?;
            }
            Ok(point)
        };
        let found = (0..).zip(syncs);
        found
            .map(|(index, sync)| Ok((sync, point(index)?)))
            .collect()
    }
}

fn place(points: u64, index: u64) -> Result<u64> {
    points.checked_add(8 * index).ok_or(Errno::FAULT)
}
