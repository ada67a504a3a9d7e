// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapped memory: the app's writes show when it is unmapped.

use core::ffi::c_void;
use core::ptr;

use gpureplay_trace::note::{Content, Direction};

use super::transfer::{Awaited, content, hash, moved};
use super::{ABSENT, Command, command, functions};
use crate::abi::{
    Handle, MAP_READ, MAP_WRITE, MAP_WRITE_INVALIDATE, OUT_OF_RESOURCES, SUCCESS, Status, signature,
};
use crate::pending::{self, Use};
use crate::reach;
use crate::state::{self, Mapped};
use crate::table::next;

functions! {
    clEnqueueMapBuffer => map_buffer: signature::MapBuffer,
    clEnqueueMapImage => map_image: signature::MapImage,
    clEnqueueUnmapMemObject => unmap: signature::Unmap,
}

fn mapping(
    call: Command,
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
    let result = command(call, enqueue, |done| complete = done);
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
    let next = next!(clEnqueueMapBuffer: signature::MapBuffer, or ptr::null_mut());
    let (awaited, mut place) = (Awaited::new(event), event);
    if blocking == 0 {
        place = awaited.place();
    }
    let map = |own| {
        // SAFETY: the app's own arguments, but for the place for the status; if the app wants no event, the layer does.
        unsafe {
            next(
                queue, object, blocking, flags, offset, size, count, list, place, own,
            )
        }
    };
    let after = |memory: *mut c_void, complete: bool| {
        let counts = flags & MAP_WRITE_INVALIDATE == 0;
        let mut mapped = Mapped {
            offset,
            size,
            flags,
            before: None,
        };
        if counts && complete {
            // SAFETY: the runtime has mapped `size` bytes there; the app does not know the address yet.
            mapped.before = unsafe { hash(memory, size) };
        }
        state::with(|state| state.mapped.insert((object, memory.addr()), mapped));
        let read = flags & (MAP_WRITE | MAP_WRITE_INVALIDATE) == 0;
        let later = (read && !complete).then(|| state::with(state::State::add_content));
        if read {
            let seen = later.map_or(content(mapped.before), Content::Later);
            let at = (object, offset, size);
            moved(Direction::Read, at, seen, (queue, complete));
        }
        // SAFETY: the runtime has filled the place; the memory stays mapped until the app unmaps it, and nobody looks
        // at it afterwards.
        unsafe {
            match counts && !complete {
                true => awaited.watch((memory, size), Use::Before(object, later)),
                false => awaited.drop_own(),
            }
        }
    };
    let call = Command::new(queue, event, blocking != 0);
    mapping(call, status, map, after)
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
    let next = next!(clEnqueueMapImage: signature::MapImage, or ptr::null_mut());
    let map = |own| {
        // SAFETY: the app's own arguments, but for the place for the status.
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
    let call = Command::new(queue, event, blocking != 0);
    let after = |_, complete| {
        let at = (image, 0, 0);
        moved(direction, at, Content::Unseen, (queue, complete));
    };
    mapping(call, status, map, after)
}

unsafe extern "C" fn unmap(
    queue: Handle,
    object: Handle,
    memory: *mut c_void,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let next = next!(clEnqueueUnmapMemObject: signature::Unmap, or ABSENT);
    pending::look();
    // Unmapped before the app knows that the map is complete: not looked at.
    let filled = !pending::give_up(object, memory.addr());
    let mapped = state::with(|state| state.mapped.remove(&(object, memory.addr())));
    let written = mapped.filter(|m| m.flags & (MAP_WRITE | MAP_WRITE_INVALIDATE) != 0);
    let held = written.map(|m| {
        // SAFETY: mapped until the runtime hears of this call; the app is done with it.
        let now = filled.then(|| unsafe { reach::hash(memory, m.size) });
        (m, now.flatten())
    });
    let enqueue = || {
        // SAFETY: the app's own arguments.
        unsafe { next(queue, object, memory, count, list, event) }
    };
    let after = |complete| {
        let Some((mapped, now)) = held else { return };
        let unchanged = now.is_some() && now == mapped.before;
        let direction = match unchanged {
            false => Direction::Write,
            true if mapped.flags & MAP_READ != 0 => Direction::Unchanged,
            // Mapped for writing alone: all was written again.
            true => Direction::Write,
        };
        let at = (object, mapped.offset, mapped.size);
        moved(direction, at, content(now), (queue, complete));
    };
    let call = Command::new(queue, event, false);
    let status = command(call, enqueue, after);
    if let (Some(mapped), true) = (mapped, status != SUCCESS) {
        let place = (object, memory.addr());
        state::with(|state| {
            state.mapped.entry(place).or_insert(mapped);
        });
    }
    status
}
