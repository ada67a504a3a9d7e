// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panthor's calls, passed on and told to the recorder. A stream runs alone, with the recorder's sync object for its
//! end.

use std::ffi::{c_int, c_ulong};
use std::sync::Mutex;
use std::time::Duration;

use gpureplay_host::caller;
use mali_uapi::panfrost::request::{Request, number as shared};
use mali_uapi::panthor::{self as uapi, number};
use zerocopy::{FromBytes, IntoBytes};

use crate::arguments::{answered, give_back, given};
use crate::guard::hold;
use crate::kernel::{self, Kernel};
use crate::next::{self, keep_errno};
use crate::recorder::Recorder;

const MOST: u32 = 1 << 16;
/// The driver ends streams after five seconds.
const STREAM: Duration = Duration::from_secs(60);

pub(crate) fn call(
    (recorder, job): (&Mutex<Recorder<Kernel>>, &Mutex<()>),
    (fd, request, place): (c_int, Request, u64),
    pass: impl Fn() -> c_int,
) -> c_int {
    match request.number() {
        number::BO_CREATE => {
            let result = pass();
            let made = answered::<uapi::BoCreate>(request, place);
            let Some(made) = made.filter(|_| result == 0) else {
                return result;
            };
            if made.flags & uapi::NO_MMAP != 0 {
                return mapped_too(recorder, (fd, place), made);
            }
            keep_errno(|| hold(recorder).made(fd, &made));
            result
        }
        number::BO_MMAP_OFFSET => {
            let asked = given::<uapi::BoMmapOffset>(request, place);
            let asked = asked.filter(|asked| asked.pad == 0);
            if let Some(asked) = asked
                && let Some(errno) = hold(recorder).place_refused(fd, asked.handle)
            {
                next::set_errno(errno);
                return -1;
            }
            let result = pass();
            if result == 0
                && let Some(found) = answered::<uapi::BoMmapOffset>(request, place)
            {
                keep_errno(|| hold(recorder).place_told(fd, &found));
            }
            result
        }
        number::VM_BIND => {
            let Some(bind) = given::<uapi::VmBind>(request, place) else {
                return pass();
            };
            let _job = hold(job);
            let operations = list::<uapi::VmBindOp>(&bind.operations);
            let result = pass();
            keep_errno(|| match operations {
                Some(operations) if result == 0 => {
                    let mut recorder = hold(recorder);
                    let all = operations.iter();
                    all.for_each(|operation| recorder.binds(fd, bind.vm, operation));
                }
                _ => hold(recorder).lost_streams(),
            });
            result
        }
        number::GROUP_SUBMIT => {
            let Some(submit) = given::<uapi::GroupSubmit>(request, place) else {
                return pass();
            };
            let _job = hold(job);
            streams(recorder, (fd, request), submit, pass)
        }
        shared::GEM_CLOSE => {
            let closed = given::<mali_uapi::panfrost::request::GemClose>(request, place);
            let _job = hold(job);
            if let Some(closed) = closed {
                keep_errno(|| hold(recorder).given_up(fd, closed.handle));
            }
            pass()
        }
        shared::SYNCOBJ_DESTROY => {
            let gone = given::<mali_uapi::panfrost::request::Syncobj>(request, place);
            let _job = hold(job);
            let result = pass();
            if let (0, Some(gone)) = (result, gone) {
                keep_errno(|| hold(recorder).sync_gone(fd, gone.handle));
            }
            result
        }
        _ => pass(),
    }
}

/// Lets the recorder map an object that the app does not.
fn mapped_too(
    recorder: &Mutex<Recorder<Kernel>>,
    (fd, place): (c_int, u64),
    mut made: uapi::BoCreate,
) -> c_int {
    let before = next::errno();
    match kernel::make_mappable(fd, &mut made) {
        Ok(sealed) => hold(recorder).made_sealed(fd, &made, sealed),
        Err(error) => {
            next::set_errno(error);
            return -1;
        }
    }
    next::set_errno(before);
    match give_back(place, made.as_bytes()) {
        true => 0,
        false => {
            next::set_errno(libc::EFAULT);
            -1
        }
    }
}

/// Waits for the end. The caller holds the lock of jobs.
fn streams(
    recorder: &Mutex<Recorder<Kernel>>,
    (fd, request): (c_int, Request),
    mut group: uapi::GroupSubmit,
    pass: impl Fn() -> c_int,
) -> c_int {
    let submits = list::<uapi::QueueSubmit>(&group.submits);
    let only_syncs = |all: &[uapi::QueueSubmit]| all.iter().all(|submit| submit.bytes == 0);
    let unseen = || {
        let result = pass();
        if result == 0 && !submits.as_deref().is_some_and(only_syncs) {
            keep_errno(|| hold(recorder).lost_streams());
        }
        result
    };
    let Some([submit]) = submits.as_deref() else {
        return unseen();
    };
    let (mut submit, Some(mut syncs)) = (*submit, list::<uapi::SyncOp>(&submit.syncs)) else {
        return unseen();
    };
    if submit.bytes == 0 || request.size() != size_of::<uapi::GroupSubmit>() {
        return unseen();
    }
    let before = next::errno();
    let sync = hold(recorder).sync(fd, || kernel::create_sync(fd));
    let Some(sync) = sync else {
        next::set_errno(before);
        return unseen();
    };
    hold(recorder).before_stream(fd);
    syncs.push(uapi::SyncOp {
        flags: uapi::SYNC_SIGNAL,
        handle: sync,
        point: 0,
    });
    submit.syncs = array(&mut syncs);
    let mut one = [submit];
    group.submits = array(&mut one);
    let time = hold(recorder).now();
    next::set_errno(before);
    let mine = std::ptr::from_mut(&mut group).cast();
    // SAFETY: the app's request with a sync operation more; the lists outlive the call.
    let result = unsafe { next::ioctl(fd, c_ulong::from(request.0), mine) };
    if result != 0 {
        return result;
    }
    keep_errno(|| {
        hold(recorder).started_stream(fd, &submit, time);
        match kernel::wait(fd, &mut [sync], STREAM) {
            Ok(()) => {
                let well = kernel::went_well(fd, sync);
                hold(recorder).ended_stream(fd, &submit, well);
            }
            Err(_) => hold(recorder).lost_streams(),
        }
    });
    result
}

fn array<T>(list: &mut [T]) -> uapi::ObjectArray {
    uapi::ObjectArray {
        stride: size_of::<T>() as u32,
        count: list.len() as u32,
        array: list.as_mut_ptr().expose_provenance() as u64,
    }
}

/// `None`: no list, or elements of another length.
fn list<T: FromBytes + IntoBytes>(array: &uapi::ObjectArray) -> Option<Vec<T>> {
    let mut elements = Vec::new();
    if array.count == 0 {
        return Some(elements);
    }
    let stride = u64::from(array.stride);
    if array.count > MOST || stride != size_of::<T>() as u64 {
        return None;
    }
    for index in 0..u64::from(array.count) {
        let mut element = T::new_zeroed();
        let at = array.array.checked_add(index * stride)?;
        caller::read(at, element.as_mut_bytes()).ok()?;
        elements.push(element);
    }
    Some(elements)
}
