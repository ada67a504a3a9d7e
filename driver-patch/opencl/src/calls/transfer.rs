// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes and reads between host and object.

use core::cell::Cell;
use core::ffi::c_void;
use core::slice;

use gpureplay_trace::note::{Content, Direction, Note, Transfer, content_hash};

use super::{ABSENT, Command, command, functions, place};
use crate::abi::{Handle, Status, signature};
use crate::pending::{self, Use};
use crate::table::next;
use crate::{reach, sink, state};

functions! {
    clEnqueueWriteBuffer => write_buffer: signature::WriteBuffer,
    clEnqueueReadBuffer => read_buffer: signature::ReadBuffer,
    clEnqueueWriteImage => write_image: signature::TransferImage,
    clEnqueueReadImage => read_image: signature::TransferImage,
}

pub(super) fn moved(
    direction: Direction,
    (object, offset, size): (Handle, usize, usize),
    content: Content,
    (queue, complete): (Handle, bool),
) {
    if let Some(at) = place(object, offset) {
        let queue = Some(state::with(|state| state.queue(queue)));
        sink::put(&Note::Transfer(Transfer {
            direction,
            at,
            size: size as u64,
            content,
            queue,
            complete,
        }));
    }
}

/// The event of a command whose memory is looked at: the app's, or the layer's own.
///
/// The runtime fills the layer's place while the closure that reads it exists: a cell lets it.
pub(super) struct Awaited {
    own: Cell<Handle>,
    app: *mut Handle,
}

impl Awaited {
    pub(super) fn new(app: *mut Handle) -> Self {
        let own = Cell::new(Handle::NULL);
        Self { own, app }
    }

    pub(super) fn place(&self) -> *mut Handle {
        match self.app.is_null() {
            true => self.own.as_ptr(),
            false => self.app,
        }
    }

    /// # Safety
    /// The runtime has filled the place; otherwise as for [`pending::add`].
    pub(super) unsafe fn watch(&self, memory: (*const c_void, usize), used: Use) {
        // SAFETY: the caller's promises.
        unsafe { pending::add(self.place().read(), self.app.is_null(), memory, used) };
    }

    /// # Safety
    /// As for [`Awaited::watch`], which was not called.
    pub(super) unsafe fn drop_own(&self) {
        if self.own.get() != Handle::NULL
            && let Some(release) = next!(clReleaseEvent: signature::Object)
        {
            // SAFETY: the layer's own reference.
            unsafe { release(self.own.get()) };
        }
    }
}

pub(super) fn content(hash: Option<u64>) -> Content {
    hash.map_or(Content::Unseen, Content::Hash)
}

/// # Safety
/// `address` is null, or of `size` bytes that are not written meanwhile.
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
    let next = next!(clEnqueueWriteBuffer: signature::WriteBuffer, or ABSENT);
    let enqueue = || {
        // SAFETY: the app's own arguments.
        unsafe {
            next(
                queue, object, blocking, offset, size, from, count, list, event,
            )
        }
    };
    let after = |complete: bool| {
        // SAFETY: the app leaves the bytes alone until the command is complete. A runtime may accept more than exist.
        let seen = content(unsafe { reach::hash(from, size) });
        let at = (object, offset, size);
        moved(Direction::Write, at, seen, (queue, complete));
    };
    command(Command::new(queue, event, blocking != 0), enqueue, after)
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
    let next = next!(clEnqueueReadBuffer: signature::ReadBuffer, or ABSENT);
    let (awaited, mut place) = (Awaited::new(event), event);
    if blocking == 0 {
        place = awaited.place();
    }
    let enqueue = || {
        // SAFETY: the app's own arguments; if the app wants no event, the layer does.
        unsafe {
            next(
                queue, object, blocking, offset, size, to, count, list, place,
            )
        }
    };
    let after = |complete: bool| {
        let at = (object, offset, size);
        if complete || to.is_null() {
            // SAFETY: the runtime has written `size` bytes there, which the app gets only afterwards.
            let seen = content(unsafe { hash(to, size) });
            moved(Direction::Read, at, seen, (queue, complete));
            // SAFETY: the runtime has filled the place, if given.
            unsafe { awaited.drop_own() };
            return;
        }
        let id = state::with(state::State::add_content);
        moved(Direction::Read, at, Content::Later(id), (queue, false));
        // SAFETY: the runtime has filled the place; the memory is the runtime's until the app learns that it is done.
        unsafe { awaited.watch((to, size), Use::Content(id)) };
    };
    command(Command::new(queue, event, blocking != 0), enqueue, after)
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
            let next = next!($name: signature::TransferImage, or ABSENT);
            let enqueue = || {
                // SAFETY: the app's own arguments.
                unsafe {
                    next(
                        queue, image, blocking, origin, region, row, slice, memory, count, list,
                        event,
                    )
                }
            };
            // The runtime chooses where texels lie.
            let after = |complete| {
                let at = (image, 0, 0);
                moved($direction, at, Content::Unseen, (queue, complete));
            };
            command(Command::new(queue, event, blocking != 0), enqueue, after)
        }
    };
}
image_transfer!(write_image, clEnqueueWriteImage, Direction::Write);
image_transfer!(read_image, clEnqueueReadImage, Direction::Read);
