// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapped memory: what the app did to it shows when it is unmapped.

use core::ffi::c_void;
use core::ptr;

use gpureplay_trace::note::Direction;

use super::transfer::{hash, moved};
use super::{ABSENT, command, functions};
use crate::abi::{
    Handle, MAP_READ, MAP_WRITE, MAP_WRITE_INVALIDATE, OUT_OF_RESOURCES, SUCCESS, Status, signature,
};
use crate::state::{self, Mapped};
use crate::table::next;

functions! {
    clEnqueueMapBuffer => map_buffer: signature::MapBuffer,
    clEnqueueMapImage => map_image: signature::MapImage,
    clEnqueueUnmapMemObject => unmap: signature::Unmap,
}

/// Calls a function that returns an address and puts its status elsewhere, as a command.
fn mapping(
    queue: Handle,
    event: *mut Handle,
    status: *mut Status,
    map: impl FnOnce(*mut Status) -> *mut c_void,
    after: impl FnOnce(*mut c_void, bool),
) -> *mut c_void {
    let mut memory = ptr::null_mut();
    let mut own = OUT_OF_RESOURCES;
    let mut complete = false;
    let enqueue = || {
        memory = map(&raw mut own);
        own
    };
    let result = command(queue, event, |_| (), enqueue, |done| complete = done);
    if !status.is_null() {
        // SAFETY: the app's place for the status.
        unsafe { status.write(result) };
    }
    if result == SUCCESS && !memory.is_null() {
        after(memory, complete);
    }
    memory
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn map_buffer(
    queue: Handle,
    object: Handle,
    blocking: u32,
    flags: u64,
    offset: usize,
    size: usize,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
    status: *mut Status,
) -> *mut c_void {
    let Some(next) = next!(clEnqueueMapBuffer: signature::MapBuffer) else {
        return ptr::null_mut();
    };
    let map = |own| {
        // SAFETY: the app's own arguments, passed on, but for the place for the status.
        unsafe {
            next(
                queue, object, blocking, flags, offset, size, count, list, event, own,
            )
        }
    };
    let after = |memory: *mut c_void, complete: bool| {
        // SAFETY: the runtime has mapped `size` bytes there, and the app does not know the address yet.
        let before = (flags & MAP_WRITE_INVALIDATE == 0 && (complete || blocking != 0))
            .then(|| unsafe { hash(memory, size) });
        let mapped = Mapped {
            offset,
            size,
            flags,
            before: before.flatten(),
        };
        state::with(|state| state.mapped.insert((object, memory.addr()), mapped));
        if flags & (MAP_WRITE | MAP_WRITE_INVALIDATE) == 0 {
            moved(Direction::Read, (object, offset, size), mapped.before);
        }
    };
    mapping(queue, event, status, map, after)
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn map_image(
    queue: Handle,
    image: Handle,
    blocking: u32,
    flags: u64,
    origin: *const [usize; 3],
    region: *const [usize; 3],
    row: *mut usize,
    slice: *mut usize,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
    status: *mut Status,
) -> *mut c_void {
    let Some(next) = next!(clEnqueueMapImage: signature::MapImage) else {
        return ptr::null_mut();
    };
    let map = |own| {
        // SAFETY: the app's own arguments, passed on, but for the place for the status.
        unsafe {
            next(
                queue, image, blocking, flags, origin, region, row, slice, count, list, event, own,
            )
        }
    };
    let direction = if flags & (MAP_WRITE | MAP_WRITE_INVALIDATE) == 0 {
        Direction::Read
    } else {
        Direction::Write
    };
    let after = |_, _| moved(direction, (image, 0, 0), None);
    mapping(queue, event, status, map, after)
}

unsafe extern "C" fn unmap(
    queue: Handle,
    object: Handle,
    memory: *mut c_void,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let Some(next) = next!(clEnqueueUnmapMemObject: signature::Unmap) else {
        return ABSENT;
    };
    let mapped = state::with(|state| state.mapped.remove(&(object, memory.addr())));
    let written = mapped.filter(|m| m.flags & (MAP_WRITE | MAP_WRITE_INVALIDATE) != 0);
    // SAFETY: mapped until the runtime hears of this call, and the app has said that it is done with it.
    let content = written.map(|m| (m, unsafe { hash(memory, m.size) }));
    let enqueue = || {
        // SAFETY: the app's own arguments, passed on.
        unsafe { next(queue, object, memory, count, list, event) }
    };
    let after = |_| {
        let Some((mapped, now)) = content else { return };
        let unchanged = now.is_some() && now == mapped.before;
        let direction = match unchanged {
            false => Direction::Write,
            true if mapped.flags & MAP_READ != 0 => Direction::Unchanged,
            // Mapped for writing alone: what was there before was written again.
            true => Direction::Write,
        };
        moved(direction, (object, mapped.offset, mapped.size), now);
    };
    command(queue, event, |_| (), enqueue, after)
}
