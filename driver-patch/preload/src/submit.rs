// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job of the app: changes before and after it.

use std::ffi::{c_int, c_ulong};
use std::mem::offset_of;
use std::sync::Mutex;
use std::time::Duration;

use mali_uapi::panfrost::request::{self as uapi, Request};

use crate::arguments::{list, whole};
use crate::guard::hold;
use crate::kernel::{self, Kernel};
use crate::next::{self, keep_errno};
use crate::recorder::Recorder;

/// A GPU's work ends sooner; the app's own fence may be this thread's to signal after the call.
const FENCES: Duration = Duration::from_secs(5);
/// The driver ends a hanging job, but one may wait for a shared buffer's fence, which need not end.
const JOB: Duration = Duration::from_secs(60);

/// `place` begins with `job`. The caller holds the lock of jobs.
pub(crate) fn submit(
    recorder: &Mutex<Recorder<Kernel>>,
    (fd, request, place): (c_int, Request, u64),
    job: &uapi::Submit,
    pass: impl Fn() -> c_int,
) -> c_int {
    let handles = list(job.handles, job.handle_count);
    let in_syncs = list(job.in_syncs, job.in_sync_count);
    let mine = whole(request, place, size_of::<uapi::Submit>());
    let unseen = || {
        let result = pass();
        if result == 0 {
            keep_errno(|| hold(recorder).lost_job(job));
        }
        result
    };
    let (Some(handles), Some(mut in_syncs), Some(mut mine)) = (handles, in_syncs, mine) else {
        return unseen();
    };
    let before = next::errno();
    // Other errors of the wait come again from the submission.
    if !in_syncs.is_empty() && kernel::wait(fd, &mut in_syncs, FENCES) == Err(libc::ETIME) {
        next::set_errno(before);
        return unseen();
    }
    let wrong = hold(recorder).before_job(fd, &handles);
    let sync = match job.out_sync {
        0 => hold(recorder).sync(fd, || kernel::create_sync(fd)),
        sync => Some(sync),
    };
    // Later kernels have longer requests: the rest is passed on.
    let out = offset_of!(uapi::Submit, out_sync);
    mine[out..out + 4].copy_from_slice(&sync.unwrap_or(0).to_ne_bytes());
    let request = request.of_size(mine.len());
    let time = hold(recorder).now();
    next::set_errno(before);
    // SAFETY: the app's request, with a sync object for its end; it has as many bytes as it states.
    let result = unsafe { next::ioctl(fd, c_ulong::from(request.0), mine.as_mut_ptr().cast()) };
    if result != 0 {
        return result;
    }
    keep_errno(|| {
        hold(recorder).started(fd, job, time, &wrong);
        let ended = sync.map(|sync| (sync, kernel::wait(fd, &mut [sync], JOB)));
        match ended {
            Some((sync, Ok(()))) => {
                let well = kernel::went_well(fd, sync);
                hold(recorder).ended_job(fd, job, well);
            }
            _ => hold(recorder).lost_job(job),
        }
    });
    result
}
