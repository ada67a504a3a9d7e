// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rectangles are one transfer if both sides are one run of bytes.

use core::ffi::c_void;

use gpureplay_trace::note::Direction;

use super::transfer::{content, moved};
use super::{ABSENT, Command, command, functions};
use crate::abi::{Handle, Status, signature};
use crate::reach;
use crate::table::next;

functions! {
    clEnqueueWriteBufferRect => write_rectangle: signature::TransferRect,
    clEnqueueReadBufferRect => read_rectangle: signature::TransferRect,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub(super) origin: [usize; 3],
    pub(super) region: [usize; 3],
    pub(super) row: usize,
    pub(super) slice: usize,
}

impl Rectangle {
    /// First byte and length; `None` if that exceeds an address. False where bytes are left out.
    pub(super) fn span(&self) -> Option<(usize, usize, bool)> {
        let [width, height, depth] = self.region;
        let row = if self.row == 0 { width } else { self.row };
        let slice = if self.slice == 0 {
            row.checked_mul(height)?
        } else {
            self.slice
        };
        let at = |[x, y, z]: [usize; 3]| {
            let rows = row.checked_mul(y)?;
            let slices = slice.checked_mul(z)?;
            x.checked_add(rows)?.checked_add(slices)
        };
        let first = at(self.origin)?;
        let last = at([width, height.checked_sub(1)?, depth.checked_sub(1)?])?;
        let dense =
            (height == 1 || row == width) && (depth == 1 || slice == width.checked_mul(height)?);
        Some((first, last, dense))
    }
}

/// # Safety
/// The runtime has accepted the arguments, and `memory` holds what `host` says.
unsafe fn moved_rectangle(
    direction: Direction,
    object: Handle,
    (buffer, host): (Rectangle, Rectangle),
    memory: *const c_void,
    (queue, complete): (Handle, bool),
) {
    let Some((offset, size, dense)) = buffer.span() else {
        return;
    };
    let seen = match host.span() {
        Some((first, length, true))
            if (complete || direction == Direction::Write) && dense && length == size =>
        {
            // SAFETY: the rectangle is one run of bytes in the app's memory.
            unsafe { reach::hash(memory.wrapping_byte_add(first), size) }
        }
        _ => None,
    };
    let at = (object, offset, size);
    moved(direction, at, content(seen), (queue, complete));
}

macro_rules! rectangle {
    ($own:ident, $name:ident, $direction:expr) => {
        #[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
        unsafe extern "C" fn $own(
            queue: Handle,
            object: Handle,
            blocking: u32,
            buffer_origin: *const [usize; 3],
            host_origin: *const [usize; 3],
            region: *const [usize; 3],
            buffer_row: usize,
            buffer_slice: usize,
            host_row: usize,
            host_slice: usize,
            memory: *mut c_void,
            count: u32,
            list: *const Handle,
            event: *mut Handle,
        ) -> Status {
            let next = next!($name: signature::TransferRect, or ABSENT);
            let enqueue = || {
                // SAFETY: the app's own arguments.
                unsafe {
                    next(
                        queue,
                        object,
                        blocking,
                        buffer_origin,
                        host_origin,
                        region,
                        buffer_row,
                        buffer_slice,
                        host_row,
                        host_slice,
                        memory,
                        count,
                        list,
                        event,
                    )
                }
            };
            let after = |complete: bool| {
                // SAFETY: the runtime has accepted the addresses, so each holds three numbers.
                unsafe {
                    let region = region.read();
                    let of = |origin: *const [usize; 3], row, slice| Rectangle {
                        origin: origin.read(),
                        region,
                        row,
                        slice,
                    };
                    let both = (
                        of(buffer_origin, buffer_row, buffer_slice),
                        of(host_origin, host_row, host_slice),
                    );
                    moved_rectangle($direction, object, both, memory, (queue, complete));
                }
            };
            command(Command::new(queue, event, blocking != 0), enqueue, after)
        }
    };
}
rectangle!(write_rectangle, clEnqueueWriteBufferRect, Direction::Write);
rectangle!(read_rectangle, clEnqueueReadBufferRect, Direction::Read);

#[cfg(test)]
mod tests {
    use super::Rectangle;

    #[test]
    fn only_whole_rows_and_slices_are_dense() {
        let rectangle = |origin, region, row, slice| Rectangle {
            origin,
            region,
            row,
            slice,
        };
        assert_eq!(
            rectangle([0; 3], [16, 4, 2], 0, 0).span(),
            Some((0, 128, true))
        );
        assert_eq!(
            rectangle([4, 1, 0], [8, 1, 1], 16, 0).span(),
            Some((20, 8, true))
        );
        assert_eq!(
            rectangle([0; 3], [8, 2, 1], 16, 0).span(),
            Some((0, 24, false))
        );
        assert_eq!(
            rectangle([0; 3], [8, 2, 2], 8, 32).span(),
            Some((0, 48, false))
        );
        assert_eq!(rectangle([0; 3], [8, 0, 1], 8, 32).span(), None);
        assert_eq!(rectangle([0, usize::MAX, 0], [8, 1, 1], 8, 0).span(), None);
    }
}
