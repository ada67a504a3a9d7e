// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that move memory: writes, reads, copies, fills.

use core::ffi::c_void;
use core::slice;

use gpureplay_trace::note::{Direction, Note, Transfer, content_hash};

use super::{ABSENT, command, functions, place};
use crate::abi::{Handle, Status, signature};
use crate::sink;
use crate::table::next;

functions! {
    clEnqueueWriteBuffer => write_buffer: signature::WriteBuffer,
    clEnqueueReadBuffer => read_buffer: signature::ReadBuffer,
    clEnqueueCopyBuffer => copy_buffer: signature::CopyBuffer,
    clEnqueueFillBuffer => fill_buffer: signature::FillBuffer,
    clEnqueueWriteImage => write_image: signature::TransferImage,
    clEnqueueReadImage => read_image: signature::TransferImage,
}

/// Says that the host wrote or read part of a memory object.
pub(super) fn moved(
    direction: Direction,
    (object, offset, size): (Handle, usize, usize),
    hash: Option<u64>,
) {
    if let Some(at) = place(object, offset) {
        sink::put(&Note::Transfer(Transfer {
            direction,
            at,
            size: size as u64,
            hash,
        }));
    }
}

/// Hash of the app's memory.
///
/// # Safety
/// `address` is that of `size` bytes that nobody writes meanwhile, or null.
pub(super) unsafe fn hash(address: *const c_void, size: usize) -> Option<u64> {
    // SAFETY: the caller's promise.
    (!address.is_null())
        .then(|| content_hash(unsafe { slice::from_raw_parts(address.cast::<u8>(), size) }))
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn write_buffer(
    queue: Handle,
    object: Handle,
    blocking: u32,
    offset: usize,
    size: usize,
    from: *const c_void,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let Some(next) = next!(clEnqueueWriteBuffer: signature::WriteBuffer) else {
        return ABSENT;
    };
    let enqueue = || {
        // SAFETY: the app's own arguments, passed on.
        unsafe {
            next(
                queue, object, blocking, offset, size, from, count, list, event,
            )
        }
    };
    let after = |complete: bool| {
        let seen = (complete || blocking != 0).then(|| {
            // SAFETY: the runtime has accepted the address, and the app leaves the bytes alone until the command is complete.
            unsafe { hash(from, size) }
        });
        moved(Direction::Write, (object, offset, size), seen.flatten());
    };
    command(queue, event, |_| (), enqueue, after)
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn read_buffer(
    queue: Handle,
    object: Handle,
    blocking: u32,
    offset: usize,
    size: usize,
    to: *mut c_void,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let Some(next) = next!(clEnqueueReadBuffer: signature::ReadBuffer) else {
        return ABSENT;
    };
    let enqueue = || {
        // SAFETY: the app's own arguments, passed on.
        unsafe {
            next(
                queue, object, blocking, offset, size, to, count, list, event,
            )
        }
    };
    let after = |complete: bool| {
        let seen = (complete || blocking != 0).then(|| {
            // SAFETY: the runtime has written `size` bytes there, and the app gets them only after this.
            unsafe { hash(to, size) }
        });
        moved(Direction::Read, (object, offset, size), seen.flatten());
    };
    command(queue, event, |_| (), enqueue, after)
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn copy_buffer(
    queue: Handle,
    from: Handle,
    to: Handle,
    from_offset: usize,
    to_offset: usize,
    size: usize,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let Some(next) = next!(clEnqueueCopyBuffer: signature::CopyBuffer) else {
        return ABSENT;
    };
    let enqueue = || {
        // SAFETY: the app's own arguments, passed on.
        unsafe {
            next(
                queue,
                from,
                to,
                from_offset,
                to_offset,
                size,
                count,
                list,
                event,
            )
        }
    };
    let after = |_| {
        if let (Some(from), Some(to)) = (place(from, from_offset), place(to, to_offset)) {
            let size = size as u64;
            sink::put(&Note::Copy { from, to, size });
        }
    };
    command(queue, event, |_| (), enqueue, after)
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn fill_buffer(
    queue: Handle,
    object: Handle,
    pattern: *const c_void,
    pattern_size: usize,
    offset: usize,
    size: usize,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let Some(next) = next!(clEnqueueFillBuffer: signature::FillBuffer) else {
        return ABSENT;
    };
    let enqueue = || {
        // SAFETY: the app's own arguments, passed on.
        unsafe {
            next(
                queue,
                object,
                pattern,
                pattern_size,
                offset,
                size,
                count,
                list,
                event,
            )
        }
    };
    let after = |_| {
        if let Some(at) = place(object, offset) {
            let size = size as u64;
            sink::put(&Note::Fill { at, size });
        }
    };
    command(queue, event, |_| (), enqueue, after)
}

macro_rules! image_transfer {
    ($own:ident, $name:ident, $direction:expr) => {
        #[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
        unsafe extern "C" fn $own(
            queue: Handle,
            image: Handle,
            blocking: u32,
            origin: *const [usize; 3],
            region: *const [usize; 3],
            row: usize,
            slice: usize,
            memory: *mut c_void,
            count: u32,
            list: *const Handle,
            event: *mut Handle,
        ) -> Status {
            let Some(next) = next!($name: signature::TransferImage) else {
                return ABSENT;
            };
            let enqueue = || {
                // SAFETY: the app's own arguments, passed on.
                unsafe {
                    next(
                        queue, image, blocking, origin, region, row, slice, memory, count, list,
                        event,
                    )
                }
            };
            // Where its texels lie is the runtime's affair.
            let after = |_| moved($direction, (image, 0, 0), None);
            command(queue, event, |_| (), enqueue, after)
        }
    };
}
image_transfer!(write_image, clEnqueueWriteImage, Direction::Write);
image_transfer!(read_image, clEnqueueReadImage, Direction::Read);
